"""What is worked out once in a run: several simulated processes read and fold the same, and all of that is pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from controlplane import table_follower
from controlplane.core.slots.table import Slot
from controlplane.core.values import entries
from controlplane.service import intake
from tests.simulation.invariants import fencing

_KEPT = 5_000


@contextmanager
def decoding_once() -> Iterator[None]:
    """Within it, equal records are decoded once for all processes; records that cannot be are tried each time.

    All processes frame alike, so that how they frame is no part of what a record means. What a slot adds to a state's
    digest is worked out once as well; whole states are checked without that. It may be used within itself.
    """
    decode_input, decode_row, entry_share = intake.decode_input, table_follower.decode_row, entries.entry_share
    decode_once = lru_cache(_KEPT)(decode_input)
    slot_share = lru_cache(_KEPT)(entry_share)

    def share(key: object, entry: object) -> int:
        return slot_share(key, entry) if isinstance(entry, Slot) else entry_share(key, entry)

    intake.decode_input = lambda topic, raw, _framing=None: decode_once(topic, raw)
    fencing.decode_input = decode_once
    table_follower.decode_row = lru_cache(_KEPT)(decode_row)
    entries.entry_share = share
    try:
        yield
    finally:
        intake.decode_input = fencing.decode_input = decode_input
        table_follower.decode_row, entries.entry_share = decode_row, entry_share
