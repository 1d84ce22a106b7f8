"""Snapshots put into a topic by hand: whole ones of any place in a log, to be damaged, cut short or mixed by a test."""

from collections.abc import Iterable

from controlplane.codec.decisions import DecisionAssembler, decision_key, encode_decision
from controlplane.codec.outputs import encode_snapshot_part
from controlplane.config import DECISIONS, SNAPSHOTS, ClusterConfig
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.snapshots.body import parts_of, pieces_of, snapshot_id
from controlplane.core.log.snapshots.catalog import part_key
from controlplane.core.log.snapshots.log_point import LogPoint
from controlplane.core.log.state import State
from controlplane.ports import LogReader, OutgoingRecord
from controlplane.testing import (
    MemoryBroker,
    MemoryEventWriter,
    MemoryLogReader,
    MemoryTransactionalWriter,
    VirtualClock,
)


class SnapshotWorld:
    """A decision log, in parts so small that many decisions have several, and an empty topic of snapshots.

    Attributes:
        points: the place after each decision.
    """

    def __init__(self, decisions: Iterable[Decision]) -> None:
        """Commit these decisions."""
        self.cluster = ClusterConfig("c")
        self.clock = VirtualClock()
        self.broker = MemoryBroker(self.clock)
        self.broker.create_topic(self.cluster.topic(DECISIONS))
        self.empty_catalog()
        self._writer = MemoryTransactionalWriter(self.cluster, self.broker)
        self._writer.open()
        for decision in decisions:
            self.commit(decision)
        self.points = points_of(self.reader())

    def commit(self, decision: Decision) -> None:
        """Append one decision more; no point is noted."""
        key = decision_key(decision.seq)
        self._writer.commit([OutgoingRecord(DECISIONS, key, part, 0) for part in encode_decision(decision, 500)])

    def reader(self) -> MemoryLogReader:
        """A reader of its own."""
        return MemoryLogReader(self.cluster, self.broker)

    def empty_catalog(self) -> None:
        """No snapshot is there any more."""
        self.broker.create_topic(self.cluster.topic(SNAPSHOTS))

    def store(self, records: Iterable[OutgoingRecord]) -> None:
        """Append records, of snapshots for example."""
        append(self.cluster, self.broker, records)


def points_of(reader: LogReader) -> list[LogPoint]:
    """The place after each decision of an in-memory log, folded from its start."""
    reader.assign(reader.start_offsets(DECISIONS))
    assembler, state, points, begins = DecisionAssembler(), State(), [], 0
    while records := reader.poll(1_000, 0).records:
        for record in records:
            begins = begins if assembler.within_decision else record.offset
            decision = assembler.add(record.value or b"")
            if decision is not None:
                state = apply_decision(state, decision)
                points.append(LogPoint(state, begins, record.offset + 1))
    return points


def snapshot_records(point: LogPoint, attempt: int = 1, part_bytes: int = 800) -> list[OutgoingRecord]:
    """The records of a snapshot, in parts so small that there are several."""
    name = snapshot_id(point.state.seq, point.state.term, attempt)
    body = b"".join(pieces_of(point.state))
    return [
        OutgoingRecord(SNAPSHOTS, part_key(name, part.part), encode_snapshot_part(part), 0)
        for part in parts_of(name, point, body, "test", part_bytes)
    ]


def append(cluster: ClusterConfig, broker: MemoryBroker, records: Iterable[OutgoingRecord]) -> None:
    """Append records to an in-memory broker."""
    writer = MemoryEventWriter(cluster, broker)
    for record in records:
        writer.send(record)
    assert writer.flush(0) == 0
