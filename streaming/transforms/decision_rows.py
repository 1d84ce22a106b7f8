"""Records of the decision log to the rows of ``decisions``."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple, cast

from controlplane.codec.decisions import DecisionAssembler
from controlplane.codec.framing import default_framing
from controlplane.config import DECISIONS
from controlplane.core.log.decision import Decision
from controlplane.core.values.canonical import canonical_bytes
from controlplane.errors import InvalidInputError, LogContinuityError


class LogRecord(NamedTuple):
    """One record of ``decisions``."""

    partition: int
    offset: int
    append_time_ms: int
    value: bytes


class PartNumber(NamedTuple):
    """Which part of a decision a record is: ``part`` from 0 to ``part_count`` - 1."""

    part: int
    part_count: int


def part_number(record: LogRecord) -> PartNumber:
    """Which part of its decision a record is.

    Raises:
        LogContinuityError: the record cannot be read.
    """
    try:
        _, datum = default_framing().decode(record.value)
    except InvalidInputError as error:
        message = f"the record at {DECISIONS}[{record.partition}]@{record.offset} cannot be read: {error}"
        raise LogContinuityError(message) from error
    return PartNumber(cast("int", datum["part"]), cast("int", datum["part_count"]))


def decision_rows(records: Iterable[LogRecord]) -> Iterator[tuple[object, ...]]:
    """One row for each decision that is whole in these records.

    Args:
        records: in the order of the log, beginning with the first record of a decision. If the last decision is not
            whole it gives no row: it belongs to the batch that holds its last record.

    Raises:
        LogContinuityError: a record is no decision, or not the part that has to follow.
        UnsupportedFeatureLevelError: a newer version wrote a decision.
    """
    assembler = DecisionAssembler()
    part_count = 0
    for record in records:
        part_count += 1
        decision = assembler.add(record.value)
        if decision is not None:
            yield _row(decision, record, part_count)
            part_count = 0


def _row(decision: Decision, record: LogRecord, part_count: int) -> tuple[object, ...]:
    certificate = decision.certificate
    planned: tuple[object, ...] = (None,) * 6
    if certificate is not None:
        planned = (
            certificate.moved,
            certificate.least_moved,
            certificate.leader_changes,
            certificate.least_leader_changes,
            list(certificate.lost_slots),
            canonical_bytes(certificate).decode(),
        )
    return (
        DECISIONS,
        record.partition,
        record.offset,
        record.append_time_ms,
        datetime.fromtimestamp(record.append_time_ms / 1000, UTC).date(),
        decision.seq,
        decision.term,
        decision.epoch,
        decision.controller_id,
        decision.decided_at_ms,
        list(dict.fromkeys(cause.kind.value for cause in decision.causes)),
        [(cause.kind.value, cause.subject, cause.evidence) for cause in decision.causes],
        [type(event).__name__ for event in decision.events],
        canonical_bytes(decision.events).decode(),
        *planned,
        dict(decision.positions),
        part_count,
        decision.feature_level,
        decision.log_id,
        decision.policy_fingerprint,
        decision.previous_digest,
        decision.digest(),
        decision.state_digest,
        decision.moves_carried_out,
        decision.leader_changes_carried_out,
        decision.moves_left,
    )
