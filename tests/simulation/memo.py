"""What is decoded once in a run: several simulated processes read the same bytes, and decoding is pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from controlplane import table_follower
from controlplane.service import intake

_KEPT = 5_000


@contextmanager
def decoding_once() -> Iterator[None]:
    """Within it, equal records are decoded once for all processes; records that cannot be are tried each time.

    All processes frame alike, so that how they frame is no part of what a record means. It may be used within itself.
    """
    decode_input, decode_row = intake.decode_input, table_follower.decode_row
    decode_once = lru_cache(_KEPT)(decode_input)
    intake.decode_input = lambda topic, raw, _framing=None: decode_once(topic, raw)
    table_follower.decode_row = lru_cache(_KEPT)(decode_row)
    try:
        yield
    finally:
        intake.decode_input, table_follower.decode_row = decode_input, decode_row
