"""A reader in read_uncommitted, as the default of Kafka's Java client is."""

from controlplane.core.values.identifiers import TopicPartition
from controlplane.ports import PartitionEnd, RawRecord
from controlplane.testing import MemoryLogReader


class UncommittedReader(MemoryLogReader):
    """Sees open and aborted transactions."""

    def _read(self, place: TopicPartition, room: int, records: list[RawRecord]) -> PartitionEnd | None:
        partition = self._partition_at(place)
        if partition is None:
            return None
        position = self._positions[place]
        found = [
            RawRecord(place.topic, place.partition, each.offset, each.append_time_ms, each.key, each.value)
            for each in partition._records  # noqa: SLF001 - what no client of the fake is given
            if each.offset >= position and not each.is_control
        ][:room]
        records.extend(found)
        reached = found[-1].offset + 1 if len(found) == room else partition.end_offset
        self._positions[place] = reached
        if not found:
            if self._end_told_at.get(place) == reached:
                return None
            self._end_told_at[place] = reached
        return PartitionEnd(reached, partition.end_offset)
