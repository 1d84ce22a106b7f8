"""Scripts for all brokers that go away under one leader and one contender, while the leader asks them something."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from controlplane.config import DECISIONS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.service.follower import LogFollower
from controlplane.service.input_reader import InputReader
from tests.simulation.network import ALL_THAT_A_CONTROLLER_FOLLOWS
from tests.simulation.script import Script, begun

PATIENCE_MS: Final = 5_000
"""How long real readers repeat a query."""


def begun_with_one_contender() -> Script:
    """A cluster that is well, with one leader and one contender, whose readers repeat a query for seconds."""
    script = begun()
    (leader,) = script.leaders
    contender, idle = sorted(script.world.running.keys() - {leader})
    script.world.kill(idle)
    for name in (leader, contender):
        script.world.machines[name].network.patience_ms = PATIENCE_MS
    return script


@contextmanager
def kafka_goes_away_at(script: Script, owner: type, method: str) -> Iterator[None]:
    """Take Kafka away from everybody as soon as the leader calls a method, and wait for that at the end."""
    real = getattr(owner, method)
    (leader,) = script.leaders

    def ask(self: object, *arguments: object) -> object:
        if script.world.scheduler.running_name == leader:
            script.world.broker.available = False
        return real(self, *arguments)

    with patch.object(owner, method, ask):
        yield
        script.go_on_until(lambda: not script.world.broker.available, 9_000)


def let_kafka_go_while_leader_asks_for_partitions(script: Script) -> None:
    """A node has died, and the leader asks for partitions that it may have moved to."""
    with kafka_goes_away_at(script, InputReader, "lacks_partitions"):
        script.world.kill("n4")


def let_kafka_go_while_leader_takes_partitions_in(script: Script) -> None:
    """Nodes have moved to partitions that were added, and the leader reads these."""
    with kafka_goes_away_at(script, InputReader, "catch_up"):
        script.world.add_partitions(2)


def let_kafka_go_while_leader_reads_back(script: Script) -> None:
    """The leader's own decision does not come, and it reads it with a new client."""
    (leader,) = script.leaders
    decisions = {TopicPartition(DECISIONS, 0)}
    script.world.machines[leader].network.hold_back(decisions)
    with kafka_goes_away_at(script, LogFollower, "read_to"):
        script.ask("unheard", "create_namespace", namespace="tenant-a")
    script.world.machines[leader].network.let_through(decisions)


def let_kafka_go_and_leader_read_late(script: Script) -> None:
    """What the leader reads comes a second later than its ticks are acknowledged again."""
    (leader,) = script.leaders
    network = script.world.machines[leader].network
    network.hold_back(ALL_THAT_A_CONTROLLER_FOLLOWS)
    script.world.broker.available = False

    def look_again() -> None:
        now_ms = script.world.scheduler.now_ms
        if script.world.broker.available:
            script.world.scheduler.at(now_ms + 1_000, lambda: network.let_through(ALL_THAT_A_CONTROLLER_FOLLOWS))
        else:
            script.world.scheduler.at(now_ms + 50, look_again)

    look_again()


def let_kafka_go(script: Script) -> None:
    """The leader has nothing to do."""
    script.world.broker.available = False


def outlast(let_go: Callable[[Script], None], away_ms: int) -> None:
    """Let Kafka go away for so long, and then require the same leader, which soon decides."""
    script = begun_with_one_contender()
    terms = list(script.terms)
    let_go(script)
    script.go_on(away_ms)
    script.world.broker.available = True
    script.require_same_leader(terms, answered_within_ms=2_000)


def kafka_goes_while_a_leader_asks_for_partitions() -> None:
    """For ten seconds."""
    outlast(let_kafka_go_while_leader_asks_for_partitions, 10_000)


def kafka_goes_while_a_leader_takes_partitions_in() -> None:
    """For ten seconds."""
    outlast(let_kafka_go_while_leader_takes_partitions_in, 10_000)


def kafka_goes_while_a_leader_reads_back() -> None:
    """For ten seconds."""
    outlast(let_kafka_go_while_leader_reads_back, 10_000)


def kafka_comes_back_before_it_is_read() -> None:
    """After thirty seconds."""
    outlast(let_kafka_go_and_leader_read_late, 30_000)
