"""The state at a moment of the log, rebuilt from the nearest earlier snapshot or from the log's start."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from controlplane.codec.table import encode_row
from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.cluster.rows import table_settings
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.row_changes import rows_of
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.log.state import State
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.identifiers import Seq
from controlplane.core.values.positions import DECISIONS_PARTITION
from controlplane.errors import RESTORE_OR_BEGIN_ANEW, InvariantViolationError, LogContinuityError, PrerequisiteError
from controlplane.inspection import readers
from controlplane.inspection.readers import LoggedDecision
from controlplane.inspection.source import LogSource
from controlplane.topic_reading.start_point import find_start_point, require_kept


class Measure(Enum):
    """The kinds of number that name a moment."""

    EPOCH = "epoch"
    SEQ = "seq"
    OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class Moment:
    """After the last decision of an epoch, after a decision, or after all decisions that end at or before an offset."""

    measure: Measure
    number: int

    def covers(self, logged: LoggedDecision) -> bool:
        """Whether a decision is at or before the moment."""
        match self.measure:
            case Measure.EPOCH:
                return logged.decision.epoch <= self.number
            case Measure.SEQ:
                return logged.decision.seq <= self.number
            case Measure.OFFSET:
                return logged.offset <= self.number

    def is_after(self, header: SnapshotPart) -> bool:
        """Whether a snapshot is at or before the moment."""
        match self.measure:
            case Measure.EPOCH:
                return header.epoch <= self.number
            case Measure.SEQ:
                return header.seq <= self.number
            case Measure.OFFSET:
                return header.next_decision_offset - 1 <= self.number

    def has_come(self, state: State, end_offset: int) -> bool:
        """Whether a log that ends with this state and at this offset includes the moment."""
        reached = {Measure.EPOCH: state.epoch, Measure.SEQ: state.seq, Measure.OFFSET: end_offset - 1}
        return self.number <= reached[self.measure]


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of rebuilding a state.

    Attributes:
        state: at the given moment.
        began_after: the last decision of the snapshot from which it began; 0 if it began at the log's start.
        decisions: how many were applied.
    """

    state: State
    began_after: Seq
    decisions: int


def replay(
    source: LogSource,
    moment: Moment | None = None,
    *,
    from_start: bool = False,
    on_decision: Callable[[LoggedDecision], None] = lambda _: None,
) -> Replay:
    """Apply the decisions of the log up to a moment, or to its end.

    Args:
        source: the cluster's log.
        moment: where to stop; None applies all.
        from_start: do not use snapshots.
        on_decision: called after each applied decision.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: the log is not one chain.
        UnsupportedFeatureLevelError: a newer version wrote it.
        PrerequisiteError: the moment is after the last decision or before the first one.
    """
    began = LogPoint(State()) if from_start else find_start_point(source.reader, source.clock, _early_enough(moment))
    require_kept(source.reader, began.next_offset)
    state, decisions = began.state, 0
    for logged in readers.read_decisions(source, began):
        if moment is not None and not moment.covers(logged):
            break
        state = apply_decision(state, logged.decision)
        decisions += 1
        on_decision(logged)
    if moment is not None:
        _require_reached(source, moment, state)
    return Replay(state, began.state.seq, decisions)


def table_of(state: State) -> RoutingTable:
    """The routing table of a state, as readers saw it; seq and term are the state's.

    Raises:
        InvariantViolationError: the state is the one before the first decision.
    """
    rows = rows_of(state)
    digest = 0
    for key, row in rows.items():
        digest = add_hashes(digest, row_hash(key.encode(), encode_row(row, state.cluster.feature_level)))
    if not rows:
        message = "a state before the first decision has no routing table"
        raise InvariantViolationError(message)
    return RoutingTable(
        term=state.term,
        epoch=state.epoch,
        seq=state.seq,
        log_id=state.log_id,
        settings=table_settings(state.cluster),
        slots=state.slots.table,
        nodes={row.node_id: row for row in rows.values() if isinstance(row, NodeRow)},
        bundles=state.bundles.by_id,
        namespaces=state.bundles.namespaces,
        digest=format_digest(digest),
    )


def refuse_lost_log(source: LogSource) -> None:
    """Refuse a log without decisions if the routing table or a snapshot shows that there were some.

    Raises:
        LogUnavailableError: the log did not answer.
        LogContinuityError: there were decisions: the log was deleted or recreated.
    """
    table = readers.read_routing_table(source)
    # The log is read after the table: a first decision that comes meanwhile is in both, or in the log alone.
    if table is not None and not readers.read_last_decisions(source, 1):
        raise LogContinuityError(
            f"topic {DECISIONS} is empty, but {ROUTING_TABLE} holds seq {table.seq} of log {table.log_id!r}: "
            f"the decision log was deleted or recreated; {RESTORE_OR_BEGIN_ANEW}"
        )
    find_start_point(source.reader, source.clock)


def _early_enough(moment: Moment | None) -> Callable[[SnapshotPart], bool]:
    return (lambda _: True) if moment is None else moment.is_after


def _require_reached(source: LogSource, moment: Moment, state: State) -> None:
    end_offset = source.reader.end_offsets(DECISIONS)[DECISIONS_PARTITION]
    what = f"{moment.measure.value} {moment.number}"
    if not moment.has_come(state, end_offset):
        newest = {Measure.EPOCH: state.epoch, Measure.SEQ: state.seq, Measure.OFFSET: end_offset - 1}
        raise PrerequisiteError(f"{what} is not there yet: the newest one is {newest[moment.measure]}")
    if not state.seq:
        raise PrerequisiteError(f"no decision was there yet at {what}")
