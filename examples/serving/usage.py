"""What a process takes of its machine, for load reports."""

import os
import resource
import time
from pathlib import Path
from typing import Final

from controlplane.node import ResourceUsage

_MIB: Final = 1 << 20
_STATM: Final = Path("/proc/self/statm")


class Usage:
    """Measures this process from one load report to the next. For one thread."""

    def __init__(self) -> None:
        self._since_s = time.monotonic()
        self._cpu_s = time.process_time()

    def take(self) -> tuple[ResourceUsage, float]:
        """The CPU time since the last call, in percent of a core, and how many seconds that is ago."""
        now_s, cpu_s = time.monotonic(), time.process_time()
        seconds, used_s = max(now_s - self._since_s, 1e-3), cpu_s - self._cpu_s
        self._since_s, self._cpu_s = now_s, cpu_s
        return ResourceUsage(100.0 * used_s / seconds, 100.0 * (os.cpu_count() or 1)), seconds


def resident_memory() -> ResourceUsage:
    """Resident memory of this process and the machine's memory, both in MiB."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page_bytes / _MIB
    try:
        used = int(_STATM.read_text(encoding="ascii").split()[1]) * page_bytes / _MIB
    except FileNotFoundError:  # Not Linux: the standard library has only the greatest use so far.
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return ResourceUsage(used, total)
