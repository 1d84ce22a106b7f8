"""The machine's clock."""

import time

_NANOSECONDS_PER_MS = 1_000_000


class SystemClock:
    """Implements :class:`controlplane.ports.Clock` with the operating system's clocks."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back; the starting point means nothing."""
        return time.monotonic_ns() // _NANOSECONDS_PER_MS

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as the machine believes: carried for people, never trusted."""
        return time.time_ns() // _NANOSECONDS_PER_MS
