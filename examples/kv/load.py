"""A node's measurements of its own work, by slot, for its load reports."""

import threading
from collections.abc import Mapping

from controlplane.node import NodeLoad, SlotLoad
from examples.serving.usage import Usage, resident_memory


class LoadMeter:
    """Counts served requests by slot, from one load report to the next. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[int, tuple[int, int]] = {}
        self._usage = Usage()

    def count(self, slot_id: int, byte_count: int) -> None:
        """Count a served request, with the bytes that it wrote or read."""
        with self._lock:
            requests, throughput = self._slots.get(slot_id, (0, 0))
            self._slots[slot_id] = requests + 1, throughput + byte_count

    def report(self, stored_bytes: Mapping[int, int]) -> NodeLoad:
        """The load since the last report, for the slots that this node leads: their numbers, and the bytes in them."""
        with self._lock:
            cpu, seconds = self._usage.take()
            slots, self._slots = self._slots, {}
        loads = []
        for slot_id, stored in sorted(stored_bytes.items()):
            requests, throughput = slots.get(slot_id, (0, 0))
            loads.append(SlotLoad(slot_id, requests / seconds, throughput / seconds, stored))
        return NodeLoad(cpu=cpu, memory=resident_memory(), slots=tuple(loads))
