"""Records of the decision log to the rows of ``decisions``."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

from controlplane.codec.decisions import DecisionAssembler
from controlplane.config import DECISIONS
from controlplane.core.log.decision import Decision
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.identifiers import Seq
from controlplane.errors import InvalidInputError, LogContinuityError
from streaming.contracts.days import day_of_ms
from streaming.contracts.records import DECISIONS_TABLE
from streaming.error_texts import HOW_TO_MEND
from streaming.records.decode import RawRow


class Part(NamedTuple):
    """The place of a record in the log: part ``part``, from 0 on, of decision ``seq``."""

    log_id: str
    seq: int
    part: int


def part_of(record: RawRow, log_id: str, next_seq: Seq | None = None) -> Part | None:
    """The decision and part of a record; None if the record is foreign.

    Args:
        record: the record.
        log_id: the log that is read; empty takes any.
        next_seq: the decision that comes next, if that is known. A record in an unknown schema under any other key is
            foreign, because a newer version can only have written it under this one.

    Raises:
        UnsupportedFeatureLevelError: a newer version wrote it.
    """
    try:
        datum = DecisionAssembler(log_id=log_id, next_seq=next_seq).read(record.value, record.key)
    except InvalidInputError:
        return None
    return Part(cast("str", datum["log_id"]), cast("int", datum["seq"]), cast("int", datum["part"]))


def decision_rows(
    records: Iterable[RawRow],
    log_id: str = "",
    on_foreign: Callable[[RawRow], None] = lambda _: None,
    next_seq: Seq | None = None,
) -> Iterator[tuple[object, ...]]:
    """One row for each decision that is whole in these records. Foreign records are skipped.

    Args:
        records: in the order of the log. A last decision that is not whole gives no row. It belongs to the batch with
            its last record.
        log_id: the log that is read; if it is empty, the first decision determines it.
        on_foreign: is called with each skipped record.
        next_seq: the decision that has to come first, with its first part; None: the first whole one may be any. The
            log may then begin within another, whose first parts Kafka has deleted, and which gives no row.

    Raises:
        LogContinuityError: a record is not the next part, or a decision not the next one.
        UnsupportedFeatureLevelError: a newer version wrote a decision.
    """
    assembler = DecisionAssembler(log_id=log_id)
    due = next_seq
    part_count = 0
    for record in records:
        try:
            decision = assembler.add(record.value, record.key)
        except InvalidInputError:
            on_foreign(record)
            continue
        except LogContinuityError as error:
            if due is None and not assembler.within_decision:
                continue
            raise _discontinued(record, str(error)) from error
        part_count += 1
        if decision is not None:
            if due not in (None, decision.seq):
                raise _discontinued(record, f"decision {due} is due, and decision {decision.seq} is there")
            yield _row(decision, record, part_count)
            due = Seq(decision.seq + 1)
            part_count = 0


def _discontinued(record: RawRow, fault: str) -> LogContinuityError:
    return LogContinuityError(
        f"{DECISIONS}[{record.partition}]@{record.offset} does not continue the table {DECISIONS_TABLE.name}: {fault}. "
        "'controlplane log verify' says whether the log itself is whole. If it is, and the table or its checkpoint was "
        f"restored from a copy, run 'controlplane pipeline rebuild-checkpoint {DECISIONS}'; {HOW_TO_MEND}"
    )


def _row(decision: Decision, record: RawRow, part_count: int) -> tuple[object, ...]:
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
        day_of_ms(record.append_time_ms),
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
