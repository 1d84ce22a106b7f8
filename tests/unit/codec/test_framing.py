"""The header of a record: which schema wrote it, in both framings, and what happens to bytes that are not ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.codec.framing import Framing, default_framing, framing_with
from controlplane.codec.schema_store import default_store
from controlplane.errors import ConfigurationError, InvalidInputError

TICK = {"controller_id": "c1", "sent_at_ms": 1, "seq": 0, "table_epoch": 0}


def _reason(framing: Framing, value: bytes) -> str:
    with pytest.raises(InvalidInputError) as caught:
        framing.decode(value)
    return caught.value.reason


def test_single_object_header_is_marker_and_little_endian_fingerprint() -> None:
    """Readers in other languages find the schema by these ten bytes, so they are fixed."""
    encoded = default_framing().encode("Tick", TICK)
    assert encoded[:10].hex() == "c301" + "8493f36ab67fdb06"
    assert default_framing().decode(encoded) == (default_store().current("Tick"), TICK)


def test_confluent_framing_is_read_by_the_ids_that_were_named() -> None:
    """A producer with a registry writes an id instead of a fingerprint: the reader is told what it means."""
    framing = framing_with({7: "Tick.v2", 1 << 31: "NodeLeft.v1"})
    encoded = default_framing().encode("Tick", TICK)
    assert framing.decode(b"\x00\x00\x00\x00\x07" + encoded[10:]) == (default_store().current("Tick"), TICK)
    assert framing.unframe(b"\x00\x80\x00\x00\x00")[0].name == "NodeLeft"
    assert framing.decode(encoded)[1] == TICK


@pytest.mark.parametrize(
    ("schema_ids", "message"),
    [({7: "Tick.v99"}, "Tick.v99"), ({7: "Tick"}, "Tick.v1"), ({1 << 32: "Tick.v1"}, "4294967296")],
)
def test_an_id_that_cannot_be_meant_is_refused_at_the_start(schema_ids: dict[int, str], message: str) -> None:
    """A mistyped name would otherwise refuse every record of a node, one by one."""
    with pytest.raises(ConfigurationError, match=message):
        framing_with(schema_ids)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not_avro_framed"),
        (b'{"node_id":"n1"}', "not_avro_framed"),
        (b"\xc3\x01", "truncated"),
        (b"\xc3\x01" + b"\x11" * 7, "truncated"),
        (b"\xc3\x01" + b"\x11" * 8, "unknown_fingerprint"),
        (b"\x00\x00", "truncated"),
        (b"\x00\x00\x00\x00\x07rest", "unknown_schema_id"),
    ],
)
def test_a_header_that_cannot_be_used_is_refused_with_its_reason(value: bytes, reason: str) -> None:
    """Each kind of foreign record gets a reason of its own, because the remedy differs."""
    assert _reason(default_framing(), value) == reason


@given(cut=st.integers(min_value=10, max_value=200))
def test_a_cut_body_is_truncated(cut: int) -> None:
    """A record that ends early must never be read as a shorter one."""
    encoded = default_framing().encode("Tick", {"controller_id": "c" * 180, "sent_at_ms": 1 << 60})
    assert cut < len(encoded)
    assert _reason(default_framing(), encoded[:cut]) == "truncated"


@given(rest=st.binary(min_size=1, max_size=20))
def test_bytes_after_the_record_are_refused(rest: bytes) -> None:
    """Two records glued together, or a schema that is not the writer's, leave bytes over: nothing is ignored."""
    assert _reason(default_framing(), default_framing().encode("Tick", TICK) + rest) == "trailing_bytes"


def test_broken_text_is_undecodable() -> None:
    """A string that is no UTF-8 cannot be carried on as something else."""
    encoded = default_framing().encode("Tick", {"controller_id": "cc", "sent_at_ms": 1})
    assert _reason(default_framing(), encoded.replace(b"cc", b"\xff\xfe")) == "undecodable"


def test_a_branch_that_does_not_exist_is_undecodable() -> None:
    """An optional field has two branches; a third one is no record of ours."""
    encoded = default_framing().encode("Slot", {"slot_id": 1, "leader": None, "followers": [], "leader_epoch": 1})
    assert _reason(default_framing(), encoded[:11] + b"\x06" + encoded[12:]) == "undecodable"


@pytest.mark.parametrize(
    "datum",
    [
        {"controller_id": "c", "sent_at_ms": 1 << 63},
        {"controller_id": "\ud800", "sent_at_ms": 1},
        {"controller_id": "c"},
        {"controller_id": 5, "sent_at_ms": 1},
        {"controller_id": "c", "sent_at_ms": 1, "zone": "a field that the schema lacks"},
    ],
)
def test_what_does_not_fit_the_schema_is_not_written(datum: dict[str, object]) -> None:
    """A value that readers could not read back must fail at its writer."""
    with pytest.raises(InvalidInputError) as caught:
        default_framing().encode("Tick", datum)
    assert caught.value.reason == "unencodable"
