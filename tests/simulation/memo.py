"""Results of pure functions that are computed once in a run, although several processes need them."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from unittest.mock import patch

from controlplane.codec.framing import Framing
from controlplane.codec.inputs import decode_input
from controlplane.codec.table import decode_row
from controlplane.core.slots.table import Slot
from controlplane.core.values import entries
from controlplane.core.values.entries import entry_share
from controlplane.core.values.inputs import InputRecord
from controlplane.ports import RawRecord
from controlplane.service import input_reader
from controlplane.topic_reading import table_follower
from tests.simulation.invariants import consent, fencing

_KEPT = 5_000


@contextmanager
def decoding_once() -> Iterator[None]:
    """Within it, equal records are decoded once for all processes; records that cannot be are tried each time.

    All processes frame alike, so that how they frame is no part of what a record means. What a slot adds to a state's
    digest is worked out once as well; whole states are checked without that. It may be used within itself.
    """
    decode_once, slot_share = lru_cache(_KEPT)(decode_input), lru_cache(_KEPT)(entry_share)

    def decode_without_framing(topic: str, raw: RawRecord, _framing: Framing | None = None) -> InputRecord:
        return decode_once(topic, raw)

    def share(key: object, entry: object) -> int:
        return slot_share(key, entry) if isinstance(entry, Slot) else entry_share(key, entry)

    with (
        patch.object(input_reader, "decode_input", decode_without_framing),
        patch.object(fencing, "decode_input", decode_once),
        patch.object(consent, "decode_input", decode_once),
        patch.object(table_follower, "decode_row", lru_cache(_KEPT)(decode_row)),
        patch.object(entries, "entry_share", share),
    ):
        yield
