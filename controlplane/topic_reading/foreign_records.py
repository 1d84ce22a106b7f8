"""Foreign records, which a reader passes by: they are counted, and logged at a bounded rate.

A record is foreign if the topic's only writer cannot have written it: garbage, a key that does not belong to its value,
another decision log's record. The readers of all topics of a cluster share this module.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import structlog

from controlplane.ports import RawRecord

_LOG_INTERVAL_MS: Final = 10_000
"""Least append time between two log lines about one topic, so that many foreign records do not flood the log."""
_MOST_KEYS: Final = 1_000
"""The number of keys that are remembered; a remembered key is logged again only with another value."""
_SHOWN: Final = 80
"""The number of characters of a key that are logged."""

_log = structlog.get_logger(__name__)


class ForeignRecords:
    """The foreign records that one reader met in one topic of one partition. Not thread-safe.

    Attributes:
        total: the number of records. A record that is read again, because its reader began again, counts once.
    """

    def __init__(self, topic: str, on_record: Callable[[], None] = lambda: None) -> None:
        """Begin with none; ``on_record`` is called once for each foreign record."""
        self.total = 0
        self._topic = topic
        self._on_record = on_record
        self._next_offset = 0
        self._named: OrderedDict[bytes | None, bytes] = OrderedDict()
        self._named_at_ms: int | None = None
        self._unnamed = 0

    def begin_anew(self) -> None:
        """Forget the position, because the topic was recreated and its offsets hold other records now."""
        self._next_offset = 0

    def note(self, record: RawRecord, problem: str) -> None:
        """Count a record, and log its place and its problem unless that was logged recently."""
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
