"""The judge of overlaps allows none after a planned move, and what the bounds name after deaths and replacements."""

from collections.abc import Sequence
from dataclasses import replace

from controlplane.codec.inputs import encode_input
from controlplane.config import HEARTBEATS
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.membership.events import FencingCause, NodeAdmitted, NodeFenced
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.membership.node import NodeRole
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.node import FencingToken
from controlplane.ports import RawRecord
from tests.chaos.overlap_verdicts import OverlapVerdict, judge_overlaps
from tests.chaos.overlaps import Overlap
from tests.chaos.served import Process
from tests.helpers.bundle_orders import node
from tests.helpers.fencing_bounds import Bounds

ONE, SEVERAL = Bounds(1), Bounds(3)
READ_TO = 5
"""The decisions here have read the heartbeats before this offset."""
SILENT = NodeFenced("n1", 1, FencingCause.SILENCE, 2_600, 0)
REPLACED = NodeFenced("n1", 1, FencingCause.SUPERSEDED, 0, 0)


def overlap(length_ms: int) -> Overlap:
    """n1, whose token is of epoch 5, overlaps with n2, whose token is of epoch 9."""
    tokens = [FencingToken(Term(1), Epoch(epoch)) for epoch in (5, 9)]
    return Overlap("slot 8", Process("n1", 10), tokens[0], Process("n2", 20), tokens[1], 0, 1_000 * length_ms)


def log(*events: Event, epoch: int = 9) -> list[Decision]:
    """A decision with these events."""
    blank = Decision(Seq(4), Term(1), Epoch(1), "log", "c1", 3, 0, (), (), {}, "", None, "", "")
    return [replace(blank, epoch=Epoch(epoch), events=events, positions={"heartbeats[0]": READ_TO})]


def beat(offset: int, incarnation: int = 1) -> RawRecord:
    """A heartbeat of n1."""
    value = encode_input(Heartbeat("n1", incarnation, 0, Epoch(5), NodeRole.DATA))
    return RawRecord(HEARTBEATS, 0, offset, 0, b"n1", value)


def verdict(
    length_ms: int, decisions: Sequence[Decision], beats: Sequence[RawRecord] = (), bounds: Bounds = ONE
) -> OverlapVerdict:
    """What is said of an overlap of that length."""
    return judge_overlaps([overlap(length_ms)], decisions, beats, bounds)


def test_none_is_allowed_after_a_planned_move() -> None:
    """Not even a moment: nothing says that n1 has lost all that it had."""
    for length_ms in (0, 1, 5_000):
        (wrong,) = verdict(length_ms, log()).wrong
        assert wrong.startswith("slot 8: n2 (process 20) under (1, 9) and n1 (process 10) under (1, 5)")
        assert "by a planned move" in wrong


def test_a_death_of_another_node_or_at_another_time_is_no_excuse() -> None:
    """It has to lie between the two tokens."""
    assert verdict(1, log(replace(REPLACED, node_id="n2"))).wrong
    assert verdict(1, log(REPLACED, epoch=5)).wrong
    assert verdict(1, log(REPLACED, epoch=10)).wrong
    assert verdict(1, log(REPLACED, epoch=6)).allowed


def test_a_node_that_was_silent_has_stopped_before() -> None:
    """Heartbeats before its fencing, and those of its next process, do not change that."""
    assert "allowed are 0 ms" in verdict(1, log(SILENT), [beat(READ_TO - 1), beat(READ_TO, incarnation=2)]).wrong[0]


def test_a_node_that_was_heard_after_its_fencing_serves_while_its_reading_is_valid() -> None:
    """On several brokers it may have read from a former leader of the table."""
    heard = [beat(READ_TO)]
    most_ms, several_ms = ONE.overlap_after_move_ms, SEVERAL.overlap_by_former_leader_ms
    assert several_ms is not None
    assert verdict(most_ms, log(SILENT), heard).allowed
    assert verdict(most_ms + 1, log(SILENT), heard).wrong
    assert verdict(several_ms, log(SILENT), heard, SEVERAL).allowed
    assert verdict(several_ms + 1, log(SILENT), heard, SEVERAL).wrong


def test_a_process_that_was_replaced_serves_while_its_reading_is_valid() -> None:
    """Whether its node was fenced by that, or had been fenced before."""
    for event in (REPLACED, NodeAdmitted(node("n1"))):
        assert verdict(ONE.overlap_after_move_ms, log(event)).allowed
        assert verdict(ONE.overlap_after_move_ms + 1, log(event)).wrong


def test_without_overlaps_nothing_is_said() -> None:
    """Whatever the log says."""
    assert judge_overlaps([], log(SILENT), [], ONE) == OverlapVerdict((), ())
