"""Scripts in which partitions are not read, and why: hanging transactions, no leader, brokers out of reach."""

from collections.abc import Callable, Iterable
from typing import Final

from controlplane.config import HEARTBEATS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.partitioning import partition_of
from controlplane.testing.memory_partition import LeadingBroker
from tests.simulation.script import USUAL, Script, begun

_HANGING: Final = "somebody"


def let_transaction_hang(script: Script) -> Callable[[], None]:
    """Let a foreign transaction stay open in a partition of ``heartbeats``; return what ends it."""
    broker, name = script.world.broker, script.world.cluster.topic(HEARTBEATS)
    epoch = broker.init_transactions(_HANGING, 10**9)
    broker.append_in_transaction(_HANGING, epoch, [(name, 0, b"x", b"y")])
    return lambda: _abort(script)


def _abort(script: Script) -> None:
    script.world.broker.init_transactions(_HANGING, 10**9)


def let_kafka_go_before_a_tick_is_read(script: Script) -> Callable[[], None]:
    """Let all brokers go away when a tick of the leader is acknowledged and not read; return what brings them back."""
    let_tick_be_unread(script)
    script.world.broker.available = False
    return lambda: setattr(script.world.broker, "available", True)


def let_leader_go_before_a_tick_is_read(script: Script) -> Callable[[], None]:
    """Let a partition lose its leader when a tick there is acknowledged and not read; return what gives it one."""
    let_tick_be_unread(script)
    script.world.lose_leader(HEARTBEATS, 0)
    return lambda: script.world.elect_leader(HEARTBEATS, 0)


def let_tick_be_unread(script: Script) -> None:
    """Let no record of a partition reach the leader for long enough to acknowledge some of its ticks there."""
    (leader,) = script.leaders
    network = script.world.machines[leader].network
    held_back = {TopicPartition(HEARTBEATS, 0)}
    script.go_on(2_500)
    network.hold_back(held_back)
    script.go_on(2_500)
    network.held_back.difference_update(held_back)


def outlast(let_go: Callable[[Script], Callable[[], None]], lasting_ms: int) -> None:
    """Let nobody read a partition for so long, and then require the same leader, which soon decides."""
    script = begun()
    terms = list(script.terms)
    mend = let_go(script)
    script.go_on(lasting_ms)
    mend()
    script.require_same_leader(terms, answered_within_ms=3_000)


def a_transaction_hangs_in_heartbeats() -> None:
    """For half a minute."""
    outlast(let_transaction_hang, 30_000)


def a_partition_has_no_leader_for_long() -> None:
    """For 25 s, after a tick that was not read."""
    outlast(let_leader_go_before_a_tick_is_read, 25_000)


def cut_off_from_broker_of(script: Script, place: TopicPartition, names: Iterable[str]) -> LeadingBroker:
    """Let a broker lead nothing but one partition, and these controllers not reach it any more; return it."""
    broker = LeadingBroker()
    script.world.broker.partitions(script.world.cluster.topic(place.topic))[place.partition].leader = broker
    script.go_on(2_000)
    for name in names:
        script.world.machines[name].network.unreachable.add(broker)
    script.go_on(500)
    return broker


def a_leader_is_cut_off_from_one_broker() -> None:
    """For good; a node dies whose heartbeats go there."""
    script = begun()
    home = partition_of(b"n4", USUAL.heartbeat_partitions)
    cut_off_from_broker_of(script, TopicPartition(HEARTBEATS, home), script.leaders)
    script.world.kill("n4")
    script.go_on(30_000)
    script.judge_end()
