"""The members of a cluster, as text."""

from collections.abc import Mapping

from controlplane.codec.input_checks import NOT_APPEND_TIME, REASONS
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.canonical import CanonicalValue
from controlplane.inspection.members import Liveness
from controlplane.inspection.readers import HeartbeatTail
from controlplane.inspection.records import Records, seconds, when


def headlines(table: RoutingTable, found: Liveness) -> list[str]:
    """How many members are live, at which log time, and whether log time stands still."""
    silent = f", {len(found.silent_ms)} silent" if found.silent_ms else ""
    log_time = when(found.log_time_ms) if found.log_time_ms else "unknown"
    lines = [f"epoch {table.epoch}, {found.living} of {len(table.nodes)} nodes live{silent} at log time {log_time}"]
    if found.stands_still_ms:
        lines.append(
            f"log time stands still: neither a controller nor a node has written for {seconds(found.stands_still_ms)} "
            "by this machine's clock, or that is ahead of the brokers' clocks"
        )
    return lines


def passed_by_lines(topic: str, tail: HeartbeatTail) -> list[str]:
    """How many heartbeats and ticks were passed by, and why: a node that sends them is silent all the same.

    Args:
        topic: the full name of the topic ``heartbeats``.
        tail: its end.
    """
    return [
        f"{'1 heartbeat or tick was' if count == 1 else f'{count:,} heartbeats and ticks were'} passed by: "
        + (
            f"topic {topic} carries its senders' time (message.timestamp.type=CreateTime); set it to LogAppendTime"
            if reason == NOT_APPEND_TIME
            else f"{reason} ({REASONS[reason].rstrip('.')})"
        )
        for reason, count in sorted(tail.passed_by.items())
    ]


def shown_rows(rows: Records, found: Liveness) -> Records:
    """The rows with the silence beside the status of each silent member.

    While log time stands still, they lack the log time since the last heartbeat: it would be 0 beside a long silence.
    """
    unknown = {"since_heartbeat_ms": None} if found.stands_still_ms else {}
    return [{**row, **unknown, "status": _status(row)} for row in rows]


def _status(row: Mapping[str, CanonicalValue]) -> CanonicalValue:
    silent_ms = row["silent_ms"]
    if not isinstance(silent_ms, int):
        return row["status"]
    least = "at least " if row["since_heartbeat_ms"] is None else ""
    return f"{row['status']}, silent for {least}{seconds(silent_ms)}"
