"""Comparison of the tables of a real cluster under the policy ``sofa`` with the runner of the recorded answers."""

from collections.abc import Iterator, Sequence

from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS
from controlplane.core.cluster.events import TermOpened
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Tick
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.policies.sofa_memory import arranged_at, sofa_table, with_ranks
from controlplane.core.slots.sofa.arranger import Tick as ArrangerTick
from controlplane.core.slots.sofa.table import INITIAL_TABLE, SofaTable
from controlplane.core.slots.sync import is_stable
from controlplane.core.values.identifiers import TopicPartition
from controlplane.core.values.inputs import InputRecord
from controlplane.core.values.positions import position_key
from controlplane.core.verification.holders import expected_owners
from controlplane.ports import RawRecord
from tests.conformance.record import lines, table_document, ticks
from tests.conformance.sofa import ask, mismatch

PATIENCE_MS = 1_500
"""How long a leader that lives may take to do what the arranger would do: it polls, decides, and commits."""
FAILOVER_MS = 10_000
"""The longest time without a leader before a term is opened."""


def assert_published_is_the_runners(decisions: Sequence[Decision], tables: Sequence[RoutingTable]) -> None:
    """Every tick's answer, computed from the previous answers, equals the table that readers saw at its epoch."""
    for line in lines(decisions):
        assert mismatch(line) is None, (line["id"], mismatch(line))
    answers: dict[int, SofaTable] = {}
    expected = INITIAL_TABLE
    for decision, tick in ticks(decisions):
        assert tick.before == expected, f"seq {decision.seq} does not begin with the answer before"
        given = {
            "slotNum": tick.settings.slot_count,
            "replicas": tick.settings.replicas,
            "dataServers": list(tick.nodes),
            "stable": tick.stable,
            "table": None if expected == INITIAL_TABLE else table_document(expected),
        }
        answer = ask(given)
        assert (answer.action.value, answer.published) == (tick.action, tick.published)
        expected = with_ranks(answer.table, expected)
        assert tick.after == expected, f"seq {decision.seq}: the order of followers, or an epoch"
        answers[decision.epoch] = expected
    assert tables
    for table in tables:
        known = [epoch for epoch in answers if epoch <= table.epoch]
        slots = answers[max(known)].slots if known else {}
        seen = {slot.slot_id: (slot.leader, set(slot.followers)) for slot in table.slots if slot.leader is not None}
        assert seen == {slot_id: (slot.leader, set(slot.followers)) for slot_id, slot in slots.items()}, table.epoch


def assert_nothing_was_missed(decisions: Sequence[Decision], heartbeats: Sequence[RawRecord]) -> int:
    """Wherever the log's inputs opened the gate, or a slot lacked a node, a decision soon followed.

    Returns:
        How often the arranger was asked and had nothing to do.
    """
    state, waiting_since_ms, idle = State(), None, 0
    upcoming = list(decisions)
    for observations in _looks(heartbeats):
        now_ms = observations.now_ms or 0
        while upcoming and _has_read(observations, upcoming[0]):
            state, waiting_since_ms = apply_decision(state, upcoming.pop(0)), None
        if not state.slots.table or now_ms - state.decided_at_ms < 1_000:
            continue
        if upcoming and _opens_term(upcoming[0]) and upcoming[0].decided_at_ms - now_ms < FAILOVER_MS:
            waiting_since_ms = None
        elif _would(state, observations).published:
            waiting_since_ms = now_ms if waiting_since_ms is None else waiting_since_ms
            assert now_ms - waiting_since_ms <= PATIENCE_MS, f"after seq {state.seq} the arranger had something to do"
        else:
            waiting_since_ms, idle = None, idle + 1
    assert not upcoming, "the inputs end before the decisions"
    return idle


def _looks(heartbeats: Sequence[RawRecord]) -> Iterator[Observations]:
    """The observations after each tick of partition 0, the partitions read side by side."""
    in_time = sorted(heartbeats, key=lambda record: (record.append_time_ms, record.partition, record.offset))
    places = {TopicPartition(HEARTBEATS, record.partition): 0 for record in heartbeats}
    observations = Observations(positions=places)
    batch: list[InputRecord] = []
    for record in in_time:
        batch.append(decode_input(HEARTBEATS, record))
        if record.partition == 0 and isinstance(batch[-1].payload, Tick):
            observations = observe(observations, batch)
            batch = []
            yield observations
    yield observe(observations, batch)


def _has_read(observations: Observations, decision: Decision) -> bool:
    """Whether these observations are those of the decision, or later ones."""
    return all(
        offset >= decision.positions.get(position_key(place), 0) for place, offset in observations.positions.items()
    )


def _opens_term(decision: Decision) -> bool:
    return any(isinstance(event, TermOpened) for event in decision.events)


def _would(state: State, observations: Observations) -> ArrangerTick:
    nodes = expected_owners(state)
    members = [(node.node_id, node.incarnation) for node in state.membership.nodes.values() if node.lives]
    since = arranged_at(state.slots.memory, state.epoch)
    by_ticks = state.cluster.has_several_brokers_rules
    reports = observations.slot_reports(members, state.slots.table, by_ticks=by_ticks)
    stable = is_stable(state.slots.table, reports, since, 180_000)
    table = sofa_table(state.slots.table, state.slots.memory, state.epoch)
    given = {
        "slotNum": state.cluster.policy.slot_count,
        "replicas": state.cluster.policy.replica_count,
        "dataServers": nodes,
        "stable": stable,
        "table": None if table == INITIAL_TABLE else table_document(table),
    }
    return ask(given)
