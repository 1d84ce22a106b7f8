"""Results as rows: plain data that commands print as tables or as JSON."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from controlplane.core.values.canonical import CanonicalValue

Record: TypeAlias = dict[str, CanonicalValue]
Records: TypeAlias = Sequence[Mapping[str, CanonicalValue]]
"""A result. All rows have the same keys, which are the columns' names and the JSON fields."""


def empty_record(fields: Sequence[str]) -> Record:
    """A row whose fields are all empty."""
    return dict.fromkeys(fields)


def when(log_time_ms: int) -> str:
    """A log time as ISO 8601 in UTC with milliseconds."""
    moment = dt.datetime.fromtimestamp(log_time_ms / 1_000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(elapsed_ms: int) -> str:
    """A duration in seconds; with a fraction if it is short."""
    return f"{elapsed_ms / 1_000:.1f} s" if elapsed_ms < 10_000 else f"{elapsed_ms // 1_000:,} s"  # noqa: PLR2004
