"""Records that a reader passes by: counted, and named in the log at a bounded rate.

A record is foreign where it is not what the topic's only writer writes: garbage, a key that does not belong to its
value, another decision log's record. Readers of every topic of a cluster share this.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import structlog

from controlplane.ports import RawRecord

_LOG_INTERVAL_MS: Final = 10_000
"""Between two lines about one topic, in its append time: a flood of foreign records must not become one of lines."""
_MOST_KEYS: Final = 1_000
"""So many keys are remembered, to be named again only with another value."""
_SHOWN: Final = 80
"""Characters of a key that are shown."""

_log = structlog.get_logger(__name__)


class ForeignRecords:
    """What one reader has passed by in one topic of one partition. Not thread-safe.

    Attributes:
        total: how many records; one that is read again, because its reader began again, counts once.
    """

    def __init__(self, topic: str, on_record: Callable[[], None] = lambda: None) -> None:
        """Nothing was passed by yet; ``on_record`` is called once for each record that is."""
        self.total = 0
        self._topic = topic
        self._on_record = on_record
        self._next_offset = 0
        self._named: OrderedDict[bytes | None, bytes] = OrderedDict()
        self._named_at_ms: int | None = None
        self._unnamed = 0

    def begin_anew(self) -> None:
        """The topic was made again: what stands at an offset that was read before is another record."""
        self._next_offset = 0

    def note(self, record: RawRecord, problem: str) -> None:
        """Count a record, and say where it stands and what is wrong with it, unless that was said just now."""
        if record.offset < self._next_offset:
            return
        self._next_offset = record.offset + 1
        self.total += 1
        self._on_record()
        value = hashlib.sha256(record.value or b"").digest()
        is_known = self._named.get(record.key) == value
        waits = self._named_at_ms is not None and abs(record.append_time_ms - self._named_at_ms) < _LOG_INTERVAL_MS
        if is_known or waits:
            self._unnamed += 1
            return
        self._named[record.key] = value
        self._named.move_to_end(record.key)
        if len(self._named) > _MOST_KEYS:
            self._named.popitem(last=False)
        _log.warning(
            "foreign record passed by",
            at=f"{self._topic}[{record.partition}]@{record.offset}",
            key=f"{record.key!r:.{_SHOWN}}",
            problem=problem,
            not_named_since=self._unnamed,
        )
        self._named_at_ms, self._unnamed = record.append_time_ms, 0
