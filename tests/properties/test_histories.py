"""Random histories through observe, decide and apply: what always holds, and what replay must give back."""

import functools
import json
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.config import HEARTBEATS
from controlplane.core.deciding.decide import Opening, decide, open_term
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import CauseKind, Decision
from controlplane.core.log.row_changes import changed_rows, rows_of
from controlplane.core.log.state import State
from controlplane.core.routing.rows import TableRow
from controlplane.core.values.canonical import from_canonical, to_canonical
from controlplane.core.values.identifiers import Seq, Term, TopicPartition
from controlplane.core.verification.invariants import check
from controlplane.errors import LogContinuityError
from tests.helpers.histories import History, operations, play
from tests.helpers.world import World


@given(operations)
@settings(max_examples=60)
def test_every_step_of_every_history_keeps_the_invariants(history: History) -> None:
    """Whatever nodes and operators do, each committed state is consistent and every plan is the least one."""
    world = play(history)
    for decision in world.decisions:
        if decision.certificate is not None:
            assert decision.certificate.moved == decision.certificate.least_moved
    check(world.state)


@given(operations)
@settings(max_examples=30)
def test_replay_from_any_snapshot_ends_in_the_same_state(history: History) -> None:
    """Folding everything equals a snapshot after any decision plus the rest, through JSON and back."""
    world = play(history)
    states = [State()]
    for decision in world.decisions:
        states.append(apply_decision(states[-1], decision))
    for index, state in enumerate(states[1:], start=1):
        restored = from_canonical(State, json.loads(json.dumps(to_canonical(state))))
        for decision in world.decisions[index:]:
            restored = apply_decision(
                restored, from_canonical(Decision, json.loads(json.dumps(to_canonical(decision))))
            )
        assert restored == world.state


@given(operations)
@settings(max_examples=30)
def test_changed_rows_fold_to_the_rows_of_the_state(history: History) -> None:
    """The rows that decisions change, folded over time, are the rows that the final state has."""
    world = play(history)
    state = State()
    rows: dict[str, TableRow] = {}
    for decision in world.decisions:
        after = apply_decision(state, decision)
        changes = changed_rows(state, after, decision.events)
        # An operator's refresh writes every row again, also those that stay.
        republished = any(cause.kind is CauseKind.TABLE_REPUBLISHED for cause in decision.causes)
        assert bool(changes or republished) == (after.epoch > state.epoch)
        for key, row in changes.items():
            if row is None:
                del rows[key]
            else:
                rows[key] = row
        state = after
    assert rows == rows_of(world.state)


@given(operations, st.integers(1, 7), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_observing_does_not_depend_on_batches_or_on_the_order_of_partitions(
    history: History, batch_size: int, random: object
) -> None:
    """Partitions have no common order, so no reader may depend on how their records are interleaved."""
    world = play(history)
    whole = observe(Observations(), world.inputs)
    by_partition: dict[tuple[str, int], list[object]] = {}
    for record in world.inputs:
        by_partition.setdefault(record.coordinates[:2], []).append(record)
    shuffled = Observations()
    while by_partition:
        place = random.choice(sorted(by_partition))  # type: ignore[attr-defined]
        shuffled = observe(shuffled, by_partition[place][:batch_size])  # type: ignore[arg-type]
        by_partition[place] = by_partition[place][batch_size:]
        if not by_partition[place]:
            del by_partition[place]
    assert shuffled.partitions == whole.partitions
    assert shuffled.now_ms == whole.now_ms
    assert shuffled.positions == whole.positions


@given(operations)
@example(
    [
        ("change_policy", ("silence_limit_ms", "5000"), None),
        ("join", "n3", 1),
        ("change_policy", ("silence_limit_ms", "1000"), None),
        ("run", 3_000, set()),
    ]
)
@settings(max_examples=30)
def test_a_reader_that_looks_back_decides_like_one_that_ran_all_the_time(
    history: History,
) -> None:
    """Observations depend on a bounded window: a cold start that looks back fences exactly the same nodes."""
    world = play([*history, ("run", 3_000, {"n1", "n2"})])
    since_ms = world.now_ms - 3 * world.state.cluster.silence_limit_ms
    recent = [record for record in world.inputs if record.coordinates.append_time_ms >= since_ms]
    heartbeats = [record for record in recent if record.coordinates.topic == HEARTBEATS]
    first = {record.coordinates[:2]: record for record in reversed(heartbeats)}
    positions = {TopicPartition(*place): record.coordinates.offset for place, record in first.items()}
    cold = Observations(positions=positions)
    cold = observe(cold, heartbeats)
    warm = decide(world.state, world.observations).sealed
    begun = decide(world.state, cold).sealed
    events = [sealed.decision.events if sealed else () for sealed in (warm, begun)]
    assert events[0] == events[1]


@given(operations)
@settings(max_examples=20)
def test_what_was_seen_before_changes_nothing(history: History) -> None:
    """A reader may be handed records again after a reconnect; positions say that they were observed."""
    world = play(history)
    assert observe(observe(Observations(), world.inputs), world.inputs) == observe(Observations(), world.inputs)


@given(operations, st.data())
@settings(max_examples=20)
def test_a_log_with_one_decision_changed_is_refused(history: History, data: st.DataObject) -> None:
    """The chain of digests finds a decision that was altered, left out, or put in from another log."""
    world = play([*history, ("join", "n1", 3), ("run", 3_000, {"n1"})])
    index = data.draw(st.integers(0, len(world.decisions) - 2))
    altered = list(world.decisions)
    original = altered[index]
    altered[index] = data.draw(
        st.sampled_from(
            (
                replace(original, decided_at_ms=original.decided_at_ms + 1),
                replace(original, causes=()),
                replace(original, log_id="another"),
                replace(original, seq=Seq(original.seq + 1)),
                replace(original, previous_digest="0" * 64),
            )
        )
    )
    with pytest.raises(LogContinuityError):
        functools.reduce(apply_decision, altered, State())


def test_a_new_term_changes_no_row() -> None:
    """A change of leader is no change of the table: no epoch, no marker, nothing for clients to do."""
    world = World()
    world.admit("n1")
    sealed = open_term(world.state, world.observations, Term(2), "c2", "test", Opening())
    assert sealed.rows == {}
    assert sealed.decision.epoch == world.state.epoch
