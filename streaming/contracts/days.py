"""The days by which tables of history are divided: those of UTC."""

from datetime import date, timedelta
from typing import Final

DAY_MS: Final = 86_400_000
_FIRST_DAY: Final = date(1970, 1, 1)


def day_of_ms(time_ms: int) -> date:
    """The day of a time in milliseconds since 1970."""
    return _FIRST_DAY + timedelta(days=time_ms // DAY_MS)


def start_of_day_ms(day: date) -> int:
    """When a day begins, in milliseconds since 1970."""
    return (day - _FIRST_DAY).days * DAY_MS
