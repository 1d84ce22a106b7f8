"""The system's clock."""

import time

_NANOSECONDS_PER_MS = 1_000_000


class SystemClock:
    """Implements :class:`controlplane.ports.Clock` with the operating system's clocks."""

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start; never decreases."""
        return time.monotonic_ns() // _NANOSECONDS_PER_MS

    def wall_ms(self) -> int:
        """Milliseconds since 1970 by the system's clock; for display, never for decisions that need it to be right."""
        return time.time_ns() // _NANOSECONDS_PER_MS
