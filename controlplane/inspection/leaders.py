"""The leader and the lease as rows: the lease, SOFARegistry's locks, the terms of the log."""

from collections.abc import Sequence

from controlplane.config import DEFAULT_LEASE_PROFILE, SOFA_LEASE_PROFILE
from controlplane.core.cluster.events import TermOpened
from controlplane.core.election.contenders import Contending
from controlplane.core.election.lock_record import LockReading, LockRecord, leader_info
from controlplane.core.operations.leader_operations import resignation_in
from controlplane.inspection.readers import LoggedDecision
from controlplane.inspection.records import Record, Records, empty_record, when
from controlplane.inspection.terms import LoggedTerm
from controlplane.ports import LeaseHeld, LeaseMissing

LEADER_FIELDS = (
    "lease_profile",
    "lease_owner",
    "lease_process",
    "lease_term",
    "lease_remaining_ms",
    "opened_term",
    "opened_by",
    "opened_at",
    "code_version",
)
UNKNOWN = "unknown"
"""Shown in place of the lease's profile if the lease store did not answer."""
CONTENDER_FIELDS = ("contender", "priority", "present_ms", "asked_ms_ago")
LOCK_FIELDS = (
    "data_center",
    "lock_name",
    "owner",
    "duration_ms",
    "gmt_create",
    "gmt_modified",
    "term",
    "term_duration",
    "leader_epoch",
    "leads_for_ms",
    "runs_out_in_ms",
)

TERM_FIELDS = (
    "term",
    "controller",
    "code_version",
    "opened_at",
    "first_seq",
    "decisions",
    "first_to_last_decision_ms",
    "ended",
    "last_decision_to_next_term_ms",
)


def leader_row(
    lease: LeaseHeld | LeaseMissing | None, locks: Sequence[LockReading], opened: LoggedDecision | None
) -> Record:
    """The holder of the lease, or else of the lock that was renewed last, and the controller that opened the last term.

    A lease of None is unknown, because the lease store did not answer.
    """
    row = empty_record(LEADER_FIELDS)
    held = [(lock, store_now_ms) for lock, store_now_ms in locks if lock and not lock.has_run_out(store_now_ms)]
    if isinstance(lease, LeaseHeld):
        row |= _lease_fields(DEFAULT_LEASE_PROFILE, lease.owner, lease.term, lease.remaining_ms)
        row["lease_process"] = lease.process or None
    elif held:
        lock, store_now_ms = max(held, key=lambda each: each[0].gmt_modified_ms)
        row |= _lease_fields(SOFA_LEASE_PROFILE, lock.owner, lock.term, _runs_out_in_ms(lock, store_now_ms))
    elif lease is None:
        row["lease_profile"] = UNKNOWN
    if opened is not None:
        event = next(event for event in opened.decision.events if isinstance(event, TermOpened))
        row |= {
            "opened_term": event.term,
            "opened_by": event.controller_id,
            "opened_at": when(opened.append_time_ms),
            "code_version": event.code_version,
        }
    return row


def disagreement(row: Record) -> str:
    """What it means if the lease names another leader than the log; empty if both name the same one."""
    owner, term, opened_by, opened_term = (
        row[name] for name in ("lease_owner", "lease_term", "opened_by", "opened_term")
    )
    if owner is None or opened_by is None:
        return ""
    # A lock of SOFARegistry counts its terms differently.
    comparable = row["lease_profile"] != SOFA_LEASE_PROFILE
    if owner == opened_by and (term == opened_term or not comparable):
        return ""
    both = f"{owner} holds the lease, and {opened_by} opened the last term of the log, {opened_term}: "
    if comparable and isinstance(term, int) and isinstance(opened_term, int) and term <= opened_term:
        return both + f"under term {term} {owner} can commit nothing, and asks for a greater one when it reads that"
    return both + f"{owner} is taking over, or cannot; if this lasts, its log lines say why"


def contender_rows(contenders: Sequence[Contending]) -> Records:
    """The contenders, the most preferred one first."""
    return [
        {
            "contender": each.owner,
            "priority": each.priority,
            "present_ms": each.present_ms,
            "asked_ms_ago": each.asked_ms_ago,
        }
        for each in sorted(contenders, key=lambda each: (-each.priority, each.owner))
    ]


def lock_rows(locks: Sequence[LockReading]) -> Records:
    """Each record of ``distribute_lock`` with every column, and the derived values."""
    return [
        {
            "data_center": lock.data_center,
            "lock_name": lock.lock_name,
            "owner": lock.owner,
            "duration_ms": lock.duration_ms,
            "gmt_create": when(lock.gmt_create_ms),
            "gmt_modified": when(lock.gmt_modified_ms),
            "term": lock.term,
            "term_duration": lock.term_duration,
            "leader_epoch": leader_info(lock).epoch,
            "leads_for_ms": max(0, leader_info(lock).expires_at_ms - store_now_ms),
            "runs_out_in_ms": max(0, _runs_out_in_ms(lock, store_now_ms)),
        }
        for lock, store_now_ms in locks
        if lock is not None
    ]


def term_rows(terms: Sequence[LoggedTerm]) -> list[Record]:
    """A row for each term, oldest first, with the reason for its end as far as the next term shows it."""
    rows: list[Record] = []
    for term, successor in zip(terms, [*terms[1:], None], strict=False):  # not strict: there may be no term at all
        first, last = term.opened.decision, term.last.decision
        rows.append(
            {
                "term": first.term,
                "controller": term.event.controller_id,
                "code_version": term.event.code_version,
                "opened_at": when(term.opened.append_time_ms),
                "first_seq": first.seq,
                "decisions": last.seq - first.seq + 1,
                "first_to_last_decision_ms": term.last.append_time_ms - term.opened.append_time_ms,
                "ended": _end_of(term, successor),
                "last_decision_to_next_term_ms": _ms_to(successor, term),
            }
        )
    return rows


def _ms_to(successor: LoggedTerm | None, term: LoggedTerm) -> int | None:
    return None if successor is None else successor.opened.append_time_ms - term.last.append_time_ms


def _end_of(term: LoggedTerm, successor: LoggedTerm | None) -> str:
    """Why a term ended, as far as the log can tell."""
    resigned = resignation_in(term.last.decision)
    if resigned is not None:
        return f"resigned: {resigned.principal} asked for it"
    if successor is None:
        return "not ended: the log has no later term"
    if successor.event.controller_id == term.event.controller_id:
        return "the same controller opened the next: fenced, cut off, restarted, or its lease was lost"
    return f"{successor.event.controller_id} took over"


def _lease_fields(profile: str, owner: str, term: int, remaining_ms: int) -> Record:
    return {
        "lease_profile": profile,
        "lease_owner": owner,
        "lease_term": term,
        "lease_remaining_ms": remaining_ms,
    }


def _runs_out_in_ms(lock: LockRecord, store_now_ms: int) -> int:
    return lock.gmt_modified_ms + lock.duration_ms - store_now_ms
