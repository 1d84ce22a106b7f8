"""How often a long-running process of ours searches its memory for unreachable cycles of objects."""

import gc
from typing import Final

_YOUNG_OBJECTS: Final = 100_000
_SEARCHES_OF_THE_YOUNG: Final = 50
_SEARCHES_OF_THE_MIDDLE: Final = 100


def collect_seldom() -> None:
    """Let Python's garbage collector search less often than by default, which is after every 700 new objects.

    A controller or a node keeps several objects for each slot, and makes them anew with a table. They are in no cycles,
    so that searching finds nothing, but by default it takes a third of the processor time of placing, publishing and
    reading a table, in pauses of up to half a second with 131,072 slots, during which no thread renews the lease or
    sends a heartbeat. What executors decode a batch of records into is a great many objects without a cycle, too:
    searching them took a quarter of the time.
    """
    gc.set_threshold(_YOUNG_OBJECTS, _SEARCHES_OF_THE_YOUNG, _SEARCHES_OF_THE_MIDDLE)
