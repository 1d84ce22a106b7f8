"""A node's measurements of its own work, for its load reports.

Keys are placed by slot and counted by bundle, so a bundle's requests arrive at many nodes. Each node sends its counts
of a bundle to the bundle's owner, and the owner reports the sum.
"""

import os
import resource
import threading
import time
from pathlib import Path
from typing import NamedTuple

from controlplane.node import BundleLoad, ResourceUsage, SlotLoad

_MIB = 1 << 20
_STATM = Path("/proc/self/statm")


class Work(NamedTuple):
    """Requests and bytes; ``in`` is sent by clients, ``out`` is read by them."""

    puts: int = 0
    gets: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    keys: int = 0

    def plus(self, other: "Work") -> "Work":
        """The sum."""
        return Work(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class LoadMeter:
    """Counts served requests by bundle and by slot; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._served: dict[str, Work] = {}
        self._keys: dict[str, set[str]] = {}
        self._slots: dict[int, tuple[int, int]] = {}
        self._owned: dict[str, Work] = {}
        self._reported_s = time.monotonic()
        self._cpu_s = time.process_time()

    def count(self, slot_id: int, bundle_id: str | None, key: str, bytes_in: int, bytes_out: int) -> None:
        """Count a served request; ``bytes_out`` is 0 for a PUT, ``bytes_in`` is 0 for a GET."""
        with self._lock:
            requests, throughput = self._slots.get(slot_id, (0, 0))
            self._slots[slot_id] = requests + 1, throughput + bytes_in + bytes_out
            if bundle_id is None:
                return
            keys = self._keys.setdefault(bundle_id, set())
            work = Work(int(bytes_in > 0), int(bytes_in == 0), bytes_in, bytes_out, int(key not in keys))
            keys.add(key)
            self._served[bundle_id] = self._served.get(bundle_id, Work()).plus(work)

    def take_served(self) -> dict[str, Work]:
        """The counts since the last call, by bundle, to be sent to the bundles' owners."""
        with self._lock:
            served, self._served = self._served, {}
            self._keys.clear()
            return served

    def add_owned(self, served: dict[str, Work]) -> None:
        """Add counts of bundles that this node owns: its own, or those that other nodes sent."""
        with self._lock:
            for bundle_id, work in served.items():
                self._owned[bundle_id] = self._owned.get(bundle_id, Work()).plus(work)

    def report(
        self, owned: list[str], stored_bytes: dict[int, int]
    ) -> tuple[tuple[BundleLoad, ...], tuple[SlotLoad, ...], ResourceUsage]:
        """CPU usage, and the rates since the last report, for the bundles that it owns and the slots that it leads."""
        with self._lock:
            now_s, cpu_s = time.monotonic(), time.process_time()
            elapsed_s = max(now_s - self._reported_s, 1e-3)
            work, self._owned = self._owned, {}
            slots, self._slots = self._slots, {}
            used_s = cpu_s - self._cpu_s
            self._reported_s, self._cpu_s = now_s, cpu_s
        bundles = tuple(_bundle_load(bundle_id, work.get(bundle_id, Work()), elapsed_s) for bundle_id in owned)
        slot_loads = tuple(
            SlotLoad(
                slot_id, slots.get(slot_id, (0, 0))[0] / elapsed_s, slots.get(slot_id, (0, 0))[1] / elapsed_s, stored
            )
            for slot_id, stored in sorted(stored_bytes.items())
        )
        return bundles, slot_loads, ResourceUsage(100.0 * used_s / elapsed_s, 100.0 * (os.cpu_count() or 1))


def resident_memory() -> ResourceUsage:
    """Resident memory of this process and the machine's memory, both in MiB."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page_bytes / _MIB
    try:
        used = int(_STATM.read_text(encoding="ascii").split()[1]) * page_bytes / _MIB
    except FileNotFoundError:  # Not Linux: the standard library has only the greatest use so far.
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return ResourceUsage(used, total)


def _bundle_load(bundle_id: str, work: Work, elapsed_s: float) -> BundleLoad:
    return BundleLoad(
        bundle_id,
        message_rate_in_per_s=work.puts / elapsed_s,
        message_rate_out_per_s=work.gets / elapsed_s,
        throughput_in_bytes_per_s=work.bytes_in / elapsed_s,
        throughput_out_bytes_per_s=work.bytes_out / elapsed_s,
        topic_count=work.keys,
        producer_count=0,
        consumer_count=0,
        cache_size_bytes=0,
    )
