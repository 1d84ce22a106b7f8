"""A world's inputs and decisions as records of Kafka, to be read again, cut or altered."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.codec.inputs import encode_input
from controlplane.config import DECISIONS
from controlplane.core.audit.log_audit import LogAudit
from controlplane.core.log.decision import Decision
from controlplane.core.log.inputs import InputPayload
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogContinuityError
from controlplane.inspection.auditing import Audited, Auditor
from controlplane.ports import PartitionEnd, PolledBatch, RawRecord
from tests.helpers.sources import source_at_rest
from tests.helpers.world import INPUT_PLACES, World

MOST_AT_ONCE = 50
DECISIONS_PARTITION = TopicPartition(DECISIONS, 0)


class RecordedLog:
    """Topics as lists of records; a partition whose first records are cut begins later."""

    def __init__(self, world: World, decisions: Sequence[Decision] | None = None) -> None:
        """All inputs of a world, and its decisions unless others are given."""
        self.policies: SlotPolicies = world.slot_policies
        self.records: dict[TopicPartition, list[RawRecord]] = defaultdict(list, {place: [] for place in INPUT_PLACES})
        for (topic, partition, offset, append_time_ms), payload, _ in world.inputs:
            assert isinstance(payload, InputPayload)
            name = getattr(payload, "node_id", "") or getattr(payload, "intent_id", "")
            record = RawRecord(topic, partition, offset, append_time_ms, name.encode(), encode_input(payload))
            self.records[TopicPartition(topic, partition)].append(record)
        for decision in world.decisions if decisions is None else decisions:
            self.append(decision)

    def append(self, decision: Decision) -> None:
        """Write a decision, and skip an offset for the control record of its transaction."""
        written = self.records[DECISIONS_PARTITION]
        for value in encode_decision(decision):
            offset = written[-1].offset + 2 if written else 0
            written.append(RawRecord(DECISIONS, 0, offset, 0, decision_key(decision.seq), value))

    def cut(self, places: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets."""
        for place, first in places.items():
            self.records[place] = [record for record in self.records[place] if record.offset >= first]

    def with_value(self, index: int, value: bytes) -> "RecordedLog":
        """The same log with another value in one record of the decisions."""
        altered = object.__new__(RecordedLog)
        altered.policies = self.policies
        altered.records = defaultdict(list, self.records)
        records = list(self.records[DECISIONS_PARTITION])
        records[index] = records[index]._replace(value=value)
        altered.records[DECISIONS_PARTITION] = records
        return altered

    def reader(self) -> "RecordedReader":
        """A reader of it."""
        return RecordedReader(self.records)

    def audit(self) -> tuple[LogAudit, list[Audited]]:
        """Audit it to its end."""
        log_audit = LogAudit(self.policies)
        return log_audit, list(Auditor(log_audit, *(source_at_rest(self.reader()) for _ in range(2))).run())


class RecordedReader:
    """Implements :class:`controlplane.ports.LogReader`; returns one partition completely after another."""

    def __init__(self, records: Mapping[TopicPartition, Sequence[RawRecord]]) -> None:
        self._records = records
        self._positions: dict[TopicPartition, int] = {}

    def partition_count(self, topic: str) -> int:
        """See the port."""
        return sum(place.topic == topic for place in self._records)

    def offsets_at_time(self, topic: str, time_ms: int, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See the port."""
        raise NotImplementedError

    def start_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See the port."""
        found = {place: records for place, records in self._records.items() if place.topic == topic}
        return {place: records[0].offset if records else 0 for place, records in found.items()}

    def end_offsets(self, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        """See the port."""
        found = {place: records for place, records in self._records.items() if place.topic == topic}
        return {place: records[-1].offset + 1 if records else 0 for place, records in found.items()}

    def _end(self, place: TopicPartition) -> PartitionEnd:
        records = self._records[place]
        end = records[-1].offset + 1 if records else 0
        return PartitionEnd(end, end)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See the port."""
        self._positions = dict(positions)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """See the port."""
        for place, position in self._positions.items():
            records = self._records[place]
            if records and position < records[0].offset:
                raise LogContinuityError(f"{place}@{position} is no longer kept")
            first = bisect_left(records, position, key=lambda record: record.offset)
            found = records[first : first + min(max_records, MOST_AT_ONCE)]
            if found:
                self._positions[place] = found[-1].offset + 1
                end = self._end(place)
                ended = {place: end} if found[-1] is records[-1] else {}
                return PolledBatch(found, ended, {place: end.high_watermark})
        return PolledBatch((), {place: self._end(place) for place in self._positions})

    def close(self) -> None:
        """See the port."""
