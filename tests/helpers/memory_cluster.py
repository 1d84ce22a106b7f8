"""Controllers in threads over the in-memory Kafka and lease store, with nodes that only send records, for tests."""

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from controlplane.codec.inputs import encode_input
from controlplane.codec.outputs import decode_dead_letter
from controlplane.config import DEAD_LETTERS, DECISIONS, HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import Decision
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import InvalidInputError
from controlplane.inspection.readers import read_routing_table
from controlplane.ports import LogReader, OutgoingRecord, PolledBatch, RawRecord
from controlplane.testing import MemoryLogReader
from controlplane.testing.memory_controllers import MemoryControllers
from controlplane.topic_reading.decision_stream import DecisionStream
from tests.helpers.sources import source_of

DEADLINE_S = 20.0


class WaitingReader:
    """Any reader, made to wait a little when there is nothing, as Kafka's does."""

    def __init__(self, reader: LogReader) -> None:
        """Wrap a reader."""
        self._reader = reader

    def __getattr__(self, name: str) -> object:
        """Everything else is the wrapped reader's."""
        return getattr(self._reader, name)

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """Wait at most 5 ms for the first record."""
        batch = self._reader.poll(max_records, timeout_ms)
        if not batch.records and timeout_ms:
            time.sleep(0.005)
        return batch


class ObservedCluster(MemoryControllers):
    """Controllers, nodes that only send records, and everything that was written. A context manager."""

    def __init__(self, schema_ids: Mapping[int, str] | None = None, name: str = "test") -> None:
        """A broker with the cluster's topics and a lease store, without running controllers.

        Args:
            schema_ids: what a registry's ids mean to the controllers.
            name: the cluster's.
        """
        super().__init__(name, schema_ids=schema_ids)
        self._writer = self.event_writer()
        self._stop_beating = threading.Event()
        self._beating: set[str] = set()
        self._beater = threading.Thread(target=self._beat, daemon=True)
        self._beater.start()

    def __exit__(self, *_: object) -> None:
        """End the nodes and every controller."""
        self._stop_beating.set()
        super().__exit__()
        self._beater.join(DEADLINE_S)

    def join(self, *node_ids: str, incarnation: int = 1) -> None:
        """Nodes join and send heartbeats from now on."""
        for node_id in node_ids:
            joined = NodeJoined(node_id, incarnation, NodeRole.DATA, (), "", 1, 0, "1", 0)
            self.send(MEMBERSHIP, node_id, encode_input(joined))
            self._beating.add(node_id)

    def silence(self, node_id: str) -> None:
        """A node sends no more heartbeats."""
        self._beating.discard(node_id)

    def intent(self, intent_id: str, kind: str, **arguments: str) -> None:
        """An operator asks for something."""
        self.send(INTENTS, intent_id, encode_input(Intent(intent_id, kind, "tester", arguments)))

    def send(self, topic: str, key: str, value: bytes | None, partition: int | None = None) -> None:
        """Append any bytes."""
        self._writer.send(OutgoingRecord(topic, key.encode(), value, partition))
        self._writer.poll(0)

    def records(self, topic: str) -> list[RawRecord]:
        """Everything committed in a topic."""
        reader = MemoryLogReader(self.cluster, self.broker)
        reader.assign(reader.start_offsets(topic))
        records: list[RawRecord] = []
        while batch := reader.poll(10_000, 0).records:
            records.extend(batch)
        return records

    def decisions(self) -> list[Decision]:
        """The decision log."""
        stream = DecisionStream()
        assembled = [stream.take(record) for record in self.records(DECISIONS)]
        return [decision for decision in assembled if decision is not None]

    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters."""
        letters = []
        for record in self.records(DEAD_LETTERS):
            with suppress(InvalidInputError):
                letters.append(decode_dead_letter(record.value or b""))
        return letters

    def table(self) -> RoutingTable | None:
        """The routing table as a reader that begins now sees it."""
        return read_routing_table(source_of(MemoryLogReader(self.cluster, self.broker)))

    def owners(self) -> Mapping[int, str | None]:
        """Slot leaders in the newest table; empty before the first."""
        table = self.table()
        return {slot.slot_id: slot.leader for slot in table.slots} if table else {}

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Poll a condition; a controller that failed ends the waiting."""
        assert self.becomes_true(condition, int(DEADLINE_S * 1_000)), "the condition did not come true in time"

    def _beat(self) -> None:
        while not self._stop_beating.wait(0.1):
            for node_id in sorted(self._beating):
                beat = Heartbeat(node_id, 1, 0, Epoch(0), NodeRole.DATA)
                self.send(HEARTBEATS, node_id, encode_input(beat))


def assert_log_is_whole(world: ObservedCluster) -> None:
    """No seq is missing or doubled, no epoch is skipped, no term falls, and the table is the last epoch's."""
    decisions = world.decisions()
    assert [decision.seq for decision in decisions] == list(range(1, len(decisions) + 1))
    for before, after in itertools.pairwise(decisions):
        assert after.epoch - before.epoch in (0, 1)
        assert after.term >= before.term
        assert after.previous_digest == before.digest()
    table = world.table()
    assert table is not None
    assert table.epoch == decisions[-1].epoch
