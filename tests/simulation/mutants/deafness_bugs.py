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
        "controlplane.core.election.leading:ControllerMachine._trigger_of_round",
        "is_outdone or (event.is_deaf and event.has_standby)",
        "is_outdone",
        scene=a_leader_is_deaf_to_a_partition,
    ),
    Mutant(
        "takes what stands behind a hanging transaction for unread",
        "controlplane.service.deafness:InputEnds._ask",
        "ends = reader.end_offsets(topic, only_answering=True)",
        "partitions = enumerate(reader._inner._partitions(topic))\n"
        "            ends = {TopicPartition(topic, number): each.end_offset for number, each in partitions}",
        scene=a_transaction_hangs_in_heartbeats,
    ),
    Mutant(
        "takes a record for unread that cannot be read now",
        "controlplane.service.deafness:DeafnessWatch.look",
        "if place not in ends:",
        "ends = {place: 0, **ends}\n        if False:",
        scene=a_partition_has_no_leader_for_long,
    ),
    Mutant(
        "leads on although it is cut off from one broker for good",
        "controlplane.core.election.leading:ControllerMachine._trigger_of_round",
        "is_outdone or (event.is_deaf and event.has_standby)",
        "event.is_deaf and event.has_standby",
        scene=a_leader_is_cut_off_from_one_broker,
    ),
    Mutant(
        "leaves the lease although Kafka answers no contender about that partition",
        "controlplane.core.election.leading:ControllerMachine._outdone_since_ms_after",
        "other_ms is None or not other_ms <= ANSWERED_WITHIN_MS < event.worst_partition_ms",
        "not ANSWERED_WITHIN_MS < event.worst_partition_ms",
        scene=a_partition_has_no_leader_for_long,
    ),
)
