"""Rows of the routing table: the digest is over their bytes, so bytes are what counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.codec.framing import default_framing
from controlplane.codec.table import decode_row, encode_row
from controlplane.core.bundles.bundle import Bundle
from controlplane.core.routing.rows import TableValue, key_of
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import from_canonical, to_canonical
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import InvalidInputError
from tests.helpers.log_values import ROWS

SLOT = Slot(7, "n1", ("n2",), Epoch(3))


@given(ROWS)
def test_a_row_comes_back_as_it_was_written(row: TableValue) -> None:
    """A router sees what the leader decided."""
    assert decode_row(key_of(row).encode(), encode_row(row)) == row


@given(ROWS)
def test_equal_rows_give_equal_bytes(row: TableValue) -> None:
    """A row built anew, from a snapshot for example, must not change the table's digest."""
    assert encode_row(from_canonical(type(row), to_canonical(row))) == encode_row(row)


def test_a_row_under_another_key_is_refused() -> None:
    """A router that took it would send requests for one slot to another one's leader."""
    with pytest.raises(InvalidInputError, match="key_mismatch"):
        decode_row(b"main/slot/8", encode_row(SLOT))


def test_what_is_no_row_is_refused() -> None:
    """Only rows and markers belong into the table."""
    tick = default_framing().encode("Tick", {"controller_id": "c", "sent_at_ms": 1})
    with pytest.raises(InvalidInputError, match="wrong_record_type"):
        decode_row(b"main/slot/7", tick)


def test_an_unknown_value_is_refused_by_name() -> None:
    """A hash function that this router does not know would send every key astray."""
    datum = {"slot_count": 8, "replica_count": 1, "hash_function": "new", "silence_limit_ms": 2_500}
    settings = default_framing().encode("TableSettings", datum)
    with pytest.raises(InvalidInputError, match="unknown_hash_function"):
        decode_row(b"main/table/settings", settings)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_refused_or_rows(body: bytes) -> None:
    """A router survives whatever stands in the topic."""
    for value in (body, encode_row(SLOT)[:10] + body):
        try:
            decode_row(b"main/slot/7", value)
        except InvalidInputError as error:
            assert error.detail  # noqa: PT017 - both outcomes are right


def test_a_bundle_keeps_its_slash() -> None:
    """A bundle's id holds the namespace and a slash: the key is the whole of it."""
    bundle = Bundle("kv", 0, 1 << 31, None)
    assert decode_row(b"main/bundle/kv/0x00000000_0x80000000", encode_row(bundle)) == bundle
