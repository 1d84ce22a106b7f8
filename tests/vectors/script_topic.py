"""Writes the reader scripts: a topic ``routing-table`` record by record, and what a reader has to make of it.

A script has a pool of records and steps. Each step says which records the topic holds at that moment, by their places
in the pool: records are appended, compacted away, or belong to a topic that was made anew.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from controlplane.codec.table import encode_row
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker, TableRow
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.identifiers import Epoch, Seq, Term

LOG: Final = "0f3c9a"
"""The log id of the tables that the scripts show, where nothing else is said."""


def text_of(raw: bytes | None) -> str | None:
    """Bytes as the vectors write them."""
    return None if raw is None else base64.b64encode(raw).decode("ascii")


class Script:
    """One reader script under work: the leader of one log, and whoever else writes into its topic."""

    def __init__(self, name: str, rules: str, about: str) -> None:
        """Begin with an empty topic; ``rules`` are those of docs/reference/protocol.md, separated by spaces."""
        self.name, self.rules, self.about = name, rules.split(), about
        self.log_id, self.term, self.epoch, self.seq = LOG, 1, 0, 0
        self.rows: dict[bytes, bytes] = {}
        self._pool: list[dict[str, Any]] = []
        self._topic: list[int] = []
        self._next_offset = 0
        self._steps: list[dict[str, Any]] = []

    @property
    def topic(self) -> tuple[int, ...]:
        """What the topic holds now."""
        return tuple(self._topic)

    def commit(self, changes: Mapping[str, TableRow | bytes | None]) -> Self:
        """A transaction of the leader: rows (bytes stand for rows of later versions), marker, control record."""
        self.epoch += 1
        self.seq += 1
        for name, row in changes.items():
            key = name.encode()
            value = row if row is None or isinstance(row, bytes) else encode_row(row)
            self.append(key, value)
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
        return self.mark()

    def marker(self, **changes: Any) -> EpochMarker:  # noqa: ANN401 - the fields of a marker
        """The marker that fits the rows, or one that differs in some fields."""
        digest = 0
        for key, value in self.rows.items():
            digest = add_hashes(digest, row_hash(key, value))
        fields: dict[str, Any] = {
            "term": Term(self.term),
            "epoch": Epoch(self.epoch),
            "seq": Seq(self.seq),
            "log_id": self.log_id,
            "row_count": len(self.rows),
            "cause": "",
            "digest": format_digest(digest),
        }
        return EpochMarker(**fields | changes)

    def mark(self, **changes: Any) -> Self:  # noqa: ANN401 - the fields of a marker
        """Append that marker and the control record that ends its transaction."""
        return self.append(MARKER_KEY.encode(), encode_row(self.marker(**changes))).control()

    def append(self, key: bytes | None, value: bytes | None) -> Self:
        """Append a record as it stands; the leader's rows know nothing of it."""
        return self._add({"offset": self._next_offset, "key": text_of(key), "value": text_of(value)})

    def control(self) -> Self:
        """A record of the broker that takes an offset and is never delivered."""
        return self._add({"offset": self._next_offset, "control": True})

    def _add(self, record: dict[str, Any]) -> Self:
        self._topic.append(len(self._pool))
        self._pool.append(record)
        self._next_offset += 1
        return self

    def without(self, *offsets: int) -> Self:
        """Compaction has removed the records at these offsets."""
        self._topic = [place for place in self._topic if self._pool[place]["offset"] not in offsets]
        return self

    def compacted(self, below: int, *, keep_tombstones: bool = True) -> Self:
        """Below this offset only the last record of each key is left, and control records are gone."""
        last = {self._pool[place].get("key"): place for place in self._topic if self._pool[place]["offset"] < below}
        self._topic = [place for place in self._topic if self._survives(place, below, last, keep_tombstones)]
        return self

    def _survives(self, place: int, below: int, last: Mapping[Any, int], keep_tombstones: bool) -> bool:
        record = self._pool[place]
        if record["offset"] >= below:
            return True
        if record.get("control") or last[record["key"]] != place:
            return False
        return keep_tombstones or record["value"] is not None

    def truncated(self, offset: int) -> Self:
        """Everything from this offset on is lost."""
        self._topic = [place for place in self._topic if self._pool[place]["offset"] < offset]
        self._next_offset = offset
        return self

    def recreated(self, log_id: str) -> Self:
        """The topic is deleted and made anew, by the leader of another log."""
        self.log_id, self.term, self.epoch, self.seq, self.rows = log_id, 1, 0, 0, {}
        self._topic, self._next_offset = [], 0
        return self

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self._next_offset

    def read(
        self,
        outcome: str,
        shown: Sequence[int] = (),
        *,
        in_use: int | None = None,
        new_reader: bool = False,
        log_id: str = "",
        rebuilt: bool | None = None,
        lookups: Sequence[Mapping[str, Any]] = (),
    ) -> Self:
        """The reader reads to the present end; ``new_reader`` stands for another one, which knows nothing.

        A reader that begins may be configured with a ``log_id``.
        """
        expected: dict[str, Any] = {"outcome": outcome, "in_use": in_use}
        if outcome != "refused":
            expected["shown"] = list(shown)
        if rebuilt is not None:
            expected["rebuilt"] = rebuilt
        if lookups:
            expected["lookups"] = list(lookups)
        first = not self._steps
        self._steps.append(
            {
                "reader": "new" if new_reader or first else "same",
                **({"log_id": log_id} if log_id else {}),
                "topic": list(self._topic),
                "end_offset": self._next_offset,
                "expected": expected,
            }
        )
        return self

    def read_part(
        self,
        delivered: int,
        shown: Sequence[int] = (),
        *,
        earlier_end: int,
        in_use: int | None = None,
        lookups: Sequence[Mapping[str, Any]] = (),
    ) -> Self:
        """The reader has read what lies below ``delivered``; it asked for the end before that came."""
        expected: dict[str, Any] = {"in_use": in_use, "shown": list(shown), "rebuilt": False}
        if lookups:
            expected["lookups"] = list(lookups)
        first = not self._steps
        self._steps.append(
            {
                "reader": "new" if first else "same",
                "topic": list(self._topic),
                "earlier_end": earlier_end,
                "delivered": delivered,
                "end_offset": self._next_offset,
                "expected": expected,
            }
        )
        return self

    def document(self) -> dict[str, Any]:
        """The script as it stands in ``reader_scripts.json``."""
        return {
            "name": self.name,
            "rules": self.rules,
            "about": self.about,
            "records": self._pool,
            "steps": self._steps,
        }
