"""Records to columns: the codec's judgement and every field of the record, for each kind of record. No Spark runs."""

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql.types import StructType

from controlplane.codec.framing import default_framing
from controlplane.codec.inputs import encode_input
from controlplane.codec.outputs import encode_dead_letter
from controlplane.config import DEAD_LETTERS, HEARTBEATS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.bundles.reports import LoadReport
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from controlplane.core.values.canonical import to_canonical
from controlplane.core.values.dead_letter import DeadLetter
from streaming.columns import KIND_COLUMN, RecordColumns, spark_type
from streaming.decode import INPUT_COLUMNS, RawRow, dead_letter_row, decode_row
from tests.golden.samples import SAMPLES, Damaged, damaged

TOPIC_OF = {
    Heartbeat: HEARTBEATS,
    Tick: HEARTBEATS,
    LoadReport: LOAD_REPORTS,
    NodeJoined: MEMBERSHIP,
    NodeLeaving: MEMBERSHIP,
    NodeLeft: MEMBERSHIP,
}
INPUTS = [
    pytest.param(sample.value, id=f"{type(sample.value).__name__} {sample.name}")
    for sample in SAMPLES
    if type(sample.value) in TOPIC_OF
]
REFUSED = [pytest.param(case, id=case.name) for case in damaged() if case.topic in INPUT_COLUMNS]


def named(struct: StructType, row: Sequence[Any]) -> dict[str, Any]:
    """A row's values under the names of its columns, nested ones too."""
    values: dict[str, Any] = {}
    for field, value in zip(struct.fields, row, strict=True):
        element = getattr(field.dataType, "elementType", None)
        if value is not None and isinstance(field.dataType, StructType):
            values[field.name] = named(field.dataType, value)
        elif isinstance(element, StructType):
            values[field.name] = None if value is None else [named(element, item) for item in value]
        else:
            values[field.name] = value
    return values


@pytest.mark.parametrize("payload", INPUTS)
def test_every_field_reaches_its_column(payload: InputPayload) -> None:
    """Each field of a record stands in the column of its name; columns of other kinds of record are null."""
    topic = TOPIC_OF[type(payload)]
    key = getattr(payload, "node_id", "").encode()
    refusal, row = decode_row(topic, RawRow(0, 17, 1_000, key, encode_input(payload)), default_framing())
    assert refusal is None
    assert row is not None
    values = named(INPUT_COLUMNS[topic].struct, row)
    values.pop(KIND_COLUMN, None)
    expected = to_canonical(payload)
    assert isinstance(expected, dict)
    assert {name: value for name, value in values.items() if name in expected} == expected
    assert {value for name, value in values.items() if name not in expected} <= {None}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_the_codecs(case: Damaged) -> None:
    """A record is refused here for the same reason as everywhere else."""
    refusal, row = decode_row(case.topic, RawRow(0, 17, 1_000, case.key.encode(), case.value), default_framing())
    assert row is None
    assert refusal is not None
    assert refusal[0] == case.reason


def test_kinds_are_told_apart() -> None:
    """Two records on one topic differ in the column ``kind``, or a tick would pass for a heartbeat."""
    kinds = set()
    for (payload,) in (parameter.values for parameter in INPUTS):
        assert isinstance(payload, InputPayload)
        if not isinstance(payload, LoadReport):
            raw = RawRow(0, 0, 0, getattr(payload, "node_id", "").encode(), encode_input(payload))
            _, row = decode_row(TOPIC_OF[type(payload)], raw, default_framing())
            assert row is not None
            kinds.add(row[0])
    assert kinds == {"heartbeat", "tick", "joined", "leaving", "left"}


def test_columns_carry_the_schemas_words() -> None:
    """Columns are explained with the schema's own sentences, so the two cannot disagree."""
    columns = RecordColumns({Tick: "tick"})
    comments = {field.name: field.metadata["comment"] for field in columns.fields}
    assert comments.keys() == {"controller_id", "sent_at_ms", "seq", "table_epoch"}
    assert all(comments.values())


def test_type_without_a_column_is_a_defect() -> None:
    """A new kind of field has to be given a Spark type before it can be stored, not be dropped."""
    with pytest.raises(TypeError, match="no Spark type"):
        spark_type(complex)


def test_dead_letter_keeps_its_source() -> None:
    """A dead letter's columns tell the refused record, not the dead letter's own place."""
    letter = DeadLetter("negative", "rate is -1", HEARTBEATS, 3, 17, 5, "controller-1", b"\x00\xff", 2)
    row = dead_letter_row(0, 99, 1_000, bytearray(encode_dead_letter(letter)))
    assert row == ("negative", "rate is -1", HEARTBEATS, 3, 17, 5, "controller-1", b"\x00\xff", 2)


@pytest.mark.parametrize("value", [b"junk", None])
def test_record_that_is_no_dead_letter_is_kept(value: bytes | None) -> None:
    """Junk on ``dead-letters`` must neither stop the stream nor vanish: it becomes a row about itself."""
    row = dead_letter_row(0, 99, 1_000, value)
    assert row[0] == "not_avro_framed"
    assert row[2:] == (DEAD_LETTERS, 0, 99, 1_000, "pipeline", value or b"", len(value or b""))
