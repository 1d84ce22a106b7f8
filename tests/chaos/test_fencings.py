"""The judge of fencings finds a node that was heard, and one fenced beyond the promise, and accuses no other."""

from collections.abc import Sequence
from dataclasses import replace

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS
from controlplane.core.log.decision import Decision
from controlplane.core.membership.events import FencingCause, NodeFenced
from controlplane.core.membership.inputs import Heartbeat, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.ports import RawRecord
from tests.chaos.fencings import judge_fencings

TICK_MS = 100
LIMIT_TICKS = 25
BEAT = encode_input(Heartbeat("n1", 1, 0, Epoch(0), NodeRole.DATA))
TICK = encode_input(Tick("c1", 0))


def records(values: Sequence[bytes], steps_ms: Sequence[int] | None = None) -> list[RawRecord]:
    """A partition with these values, a tenth of a second apart or as far as said."""
    steps = steps_ms or [TICK_MS] * len(values)
    return [
        RawRecord(HEARTBEATS, 0, offset, 1_000_000 + sum(steps[: offset + 1]), b"n1", value)
        for offset, value in enumerate(values)
    ]


def fencing(upto: int, *at_ms: int) -> list[Decision]:
    """Decisions that fence n1 at these times, having read the partition up to an offset."""
    blank = Decision(Seq(1), Term(1), Epoch(1), "log", "c1", 3, 0, (), (), {"heartbeats[0]": upto}, "", None, "", "")
    return [replace(blank, events=(NodeFenced("n1", 1, FencingCause.SILENCE, 0, each),)) for each in at_ms]


def test_a_node_that_was_heard_is_named() -> None:
    """Its heartbeat is before the position of the decision, a second before."""
    verdict = judge_fencings(fencing(13, 5), records([BEAT, TICK, BEAT, *[TICK] * 40]), 4)
    assert verdict.fenced == 1
    assert "seq 1 fenced n1 of incarnation 1" in verdict.wrong[0]
    assert "1000 ms before" in verdict.wrong[0]


def test_a_node_that_was_silent_is_not() -> None:
    """Also if a heartbeat arrived after what the decision had read."""
    values = [TICK, BEAT, *[TICK] * (LIMIT_TICKS + 2), BEAT]
    assert judge_fencings(fencing(len(values) - 1, 5), records(values), 4) == (1, ())


def test_silence_counts_from_the_append_of_the_heartbeat() -> None:
    """Not from the tick before it: a fencing up to one gap early would pass. Silence has to exceed the limit."""
    values = [TICK, BEAT, *[TICK] * LIMIT_TICKS]
    early = records(values, [TICK_MS, 90, 100, *[TICK_MS] * (LIMIT_TICKS - 1)])
    assert "2500 ms before" in judge_fencings(fencing(len(values), 5), early, 4).wrong[0]
    due = records(values, [TICK_MS, 90, 101, *[TICK_MS] * (LIMIT_TICKS - 1)])
    assert judge_fencings(fencing(len(values), 5), due, 4) == (1, ())


def test_a_clock_that_is_stepped_makes_no_silence() -> None:
    """An hour ahead between two ticks counts like one late tick."""
    values = [TICK, BEAT, TICK, TICK]
    steps = [100, 100, 100, 3_600_000]
    assert "300 ms before" in judge_fencings(fencing(4, 5), records(values, steps), 4).wrong[0]


def test_a_fencing_whose_records_are_gone_is_not_judged() -> None:
    """The topic keeps some minutes."""
    assert judge_fencings(fencing(99, 5), records([TICK, TICK]), 4).wrong == ()


def test_more_than_the_promise_within_a_window_are_named() -> None:
    """Of four nodes two; a third one only when the window has passed."""
    silent = records([BEAT, *[TICK] * 40])
    assert judge_fencings(fencing(40, 0, 5_000, 10_001), silent, 4).wrong == ()
    wrong = judge_fencings(fencing(40, 0, 5_000, 10_000), silent, 4).wrong
    assert wrong == ("n1, n1, n1 were fenced within 10000 ms; of 4 nodes 2 may be",)
