"""Runs reader scripts and decision logs through our own readers, as a reader in another language would run them."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import ControlPlaneError, LogContinuityError, StopError
from controlplane.ports import PartitionEnd, PolledBatch, RawRecord
from controlplane.topic_reading.table_follower import TableFollower

_ENOUGH_STEPS: Final = 20
"""In so many steps a follower has reached the end and begun again, if it ever does."""


def raw(text: str | None) -> bytes | None:
    """The bytes that the vectors write as text."""
    return None if text is None else base64.b64decode(text)


class VectorReader:
    """A log reader over records that a vector lists; control records take offsets and are not delivered."""

    def __init__(self, topic: str) -> None:
        """An empty partition of a topic."""
        self._place = TopicPartition(topic, 0)
        self._records: Sequence[Mapping[str, Any]] = ()
        self._end = 0
        self._delivered = 0
        self._position: int | None = None

    def show(self, records: Sequence[Mapping[str, Any]], end_offset: int, delivered: int | None = None) -> None:
        """What the topic holds from now on; the broker delivers what lies below ``delivered``, or everything."""
        self._records, self._end = records, end_offset
        self._delivered = end_offset if delivered is None else delivered

    def partition_count(self, topic: str) -> int:
        """One."""
        del topic
        return 1

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """Times are not scripted."""
        del time_ms
        return self.end_offsets(topic, only_answering=only_answering)

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """The first offset that is kept; compaction does not move it."""
        del topic, only_answering
        return {self._place: 0}

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """The last stable offset."""
        del topic, only_answering
        return {self._place: self._end}

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read on from there."""
        self._position = positions.get(self._place)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Everything up to the end, and the end."""
        del timeout_ms
        if self._position is None:
            return PolledBatch((), {})
        if self._position > self._end:
            raise LogContinuityError(f"{self._place.topic}[0]: offset {self._position} lies beyond the end {self._end}")
        waiting = [record for record in self._records if self._position <= record["offset"] < self._delivered]
        taken = waiting[:max_records]
        self._position = taken[-1]["offset"] + 1 if len(taken) < len(waiting) else self._delivered
        records = [
            RawRecord(self._place.topic, 0, record["offset"], 0, raw(record["key"]), raw(record["value"]))
            for record in taken
            if not record.get("control")
        ]
        return PolledBatch(
            records, {self._place: PartitionEnd(self._end, self._end)} if self._position == self._end else {}
        )

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class ScriptedReader:
    """Our table follower, gated as the routing client does it: nothing is routed by before the first whole end.

    Attributes:
        log_id: the log id that it was configured with; empty for none.
        in_use: the table that is routed by.
    """

    log_id: str = ""

    def __post_init__(self) -> None:
        """Know nothing."""
        self.in_use: RoutingTable | None = None
        self._shown: RoutingTable | None = None
        self._caught_up = False
        self._reader = VectorReader(ROUTING_TABLE)
        self._follower = TableFollower(self._reader, self.log_id)

    def read(
        self, records: Sequence[Mapping[str, Any]], end_offset: int, delivered: int | None = None
    ) -> dict[str, Any]:
        """Read to the end, or as far as the broker delivers; what came of it, as the vectors say it."""
        self._reader.show(records, end_offset, delivered)
        shown: list[int] = []
        rebuilds = self._follower.rebuilds
        outcome = self._read_to_end(shown)
        return {
            "outcome": outcome,
            "shown": shown,
            "in_use": int(self.in_use.epoch) if self.in_use else None,
            "rebuilt": self._follower.rebuilds > rebuilds,
        }

    def _read_to_end(self, shown: list[int]) -> str:
        for _ in range(_ENOUGH_STEPS):
            try:
                progress = self._follower.step(0)
            except StopError:
                self.in_use = None
                return "refused"
            for table in progress.tables:
                if self._shown is None or table.epoch != self._shown.epoch:
                    shown.append(int(table.epoch))
                self._shown = table
            self._caught_up = self._caught_up or progress.ended
            self.in_use = self._shown if self._caught_up else None
            if progress.ended:
                return "whole" if self._follower.table else "empty"
        return "waiting"

    def look_up(self, lookup: Mapping[str, Any]) -> dict[str, Any]:
        """What a lookup finds, in the vector's words."""
        assert self.in_use is not None
        asked = {name: lookup[name] for name in ("namespace", "key") if name in lookup}
        try:
            if "namespace" in lookup:
                bundle = self.in_use.bundle_for(lookup["namespace"], lookup["key"])
                nodes = {"owner": bundle.owner, "serving": bundle.serving_node, "next_owner": bundle.next_owner}
                return {**asked, "bundle": bundle.bundle_id, **nodes}
            slot = self.in_use.slot_for(lookup["key"])
        except ControlPlaneError:
            return {**asked, "unroutable": True}
        return {**asked, "slot": slot.slot_id, "leader": slot.leader}


def decision_reader(records: Sequence[Mapping[str, Any]]) -> VectorReader:
    """A reader of the topic ``decisions`` that holds these records, one after the other."""
    reader = VectorReader(DECISIONS)
    reader.show([{"offset": offset, **record} for offset, record in enumerate(records)], len(records))
    return reader
