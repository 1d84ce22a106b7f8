"""Bugs in how a leader finds out that it does not see all of its inputs, and where each shows."""

from typing import Final

from tests.simulation.mutants.deafness_scenes import (
    a_leader_is_cut_off_from_one_broker,
    a_partition_has_no_leader_for_long,
    a_transaction_hangs_in_heartbeats,
)
from tests.simulation.mutants.log_scenes import a_leader_is_deaf_to_a_partition
from tests.simulation.mutants.mutant import Mutant

MUTANTS: Final = (
    Mutant(
        "leads on although it is deaf to a partition",
        "controlplane.core.election.leading:ControllerMachine._is_deaf",
        "event.is_deaf and other_ms is not None and self._reaches_all(other_ms)",
        "False",
        scene=a_leader_is_deaf_to_a_partition,
    ),
    Mutant(
        "takes what stands behind a hanging transaction for unread",
        "controlplane.service.topic_ends:TopicEnds._ask",
        "ends = reader.end_offsets(topic, only_answering=True)",
        "partitions = enumerate(reader._inner._partitions(topic))\n"
        "            ends = {TopicPartition(topic, number): each.end_offset for number, each in partitions}",
        scene=a_transaction_hangs_in_heartbeats,
    ),
    Mutant(
        "leads on although it is cut off from one broker for good",
        "controlplane.core.election.leading:ControllerMachine._is_deaf",
        "since_ms is not None and now_ms - since_ms >= DEAF_AFTER_MS",
        "False",
        scene=a_leader_is_cut_off_from_one_broker,
    ),
    Mutant(
        "leaves the lease although Kafka answers no contender about that partition",
        "controlplane.core.election.leading:ControllerMachine._misses_partition_since_ms_after",
        "other_ms is None or not self._reaches_all(other_ms)",
        "(other_ms := 0)",
        scene=a_partition_has_no_leader_for_long,
    ),
)
