"""Records to columns: the codec's judgement and every field of the record, for each kind of record. No Spark runs."""

from typing import Any

import pytest

from controlplane.codec.framing import default_framing
from controlplane.codec.input_checks import key_of
from controlplane.codec.inputs import encode_input
from controlplane.codec.outputs import encode_dead_letter
from controlplane.config import DEAD_LETTERS, HEARTBEATS, INTENTS, LOAD_REPORTS, MEMBERSHIP
from controlplane.core.bundles.reports import LoadReport
from controlplane.core.intents.intent import Intent
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from controlplane.core.values.canonical import to_canonical
from controlplane.core.values.dead_letter import DeadLetter
from controlplane.core.values.identifiers import Epoch, Seq
from streaming.contracts.columns import KIND_COLUMN, RecordColumns, spark_type
from streaming.records.decode import INPUT_COLUMNS, RawRow, dead_letter_row, decode_payload
from streaming.records.record_rows import record_rows
from tests.golden.samples import SAMPLES, Damaged, damaged

TOPIC_OF = {
    Heartbeat: HEARTBEATS,
    LoadReport: LOAD_REPORTS,
    Intent: INTENTS,
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


def kept_row(topic: str, record: RawRow) -> dict[str, Any]:
    """The row of a usable record."""
    rows, ticks, refused = record_rows(topic, [record], default_framing())
    assert (ticks, refused) == ([], 0)
    (row,) = rows.to_pylist(maps_as_pydicts="strict")
    return dict(row)


@pytest.mark.parametrize("payload", INPUTS)
def test_every_field_reaches_its_column(payload: InputPayload) -> None:
    """Each field of a record stands in the column of its name; columns of other kinds of record are null."""
    topic = TOPIC_OF[type(payload)]
    key = key_of(payload)
    values = kept_row(topic, RawRow(3, 17, 1_000, key, encode_input(payload)))
    place = {"topic": topic, "partition": 3, "offset": 17, "append_time_ms": 1_000}
    assert {name: values.pop(name) for name in place} == place
    expected = to_canonical(payload)
    assert isinstance(expected, dict)
    if KIND_COLUMN not in expected:
        values.pop(KIND_COLUMN, None)
    assert {name: value for name, value in values.items() if name in expected} == expected
    assert {value for name, value in values.items() if name not in expected} <= {None}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_the_codecs(case: Damaged) -> None:
    """A record is refused here for the same reason as everywhere else."""
    record = RawRow(0, 17, 1_000, case.key.encode(), case.value)
    refusal, payload = decode_payload(case.topic, record, default_framing())
    assert payload is None
    assert refusal is not None
    assert refusal[0] == case.reason
    rows, ticks, refused = record_rows(case.topic, [record], default_framing())
    assert (rows.num_rows, ticks, refused) == (0, [], 1)


def test_kinds_are_told_apart() -> None:
    """Records on one topic differ in the column ``kind``, or one that leaves would pass for one that joins."""
    kinds = set()
    for (payload,) in (parameter.values for parameter in INPUTS):
        assert isinstance(payload, InputPayload)
        if TOPIC_OF[type(payload)] == MEMBERSHIP:
            raw = RawRow(0, 0, 0, key_of(payload), encode_input(payload))
            kinds.add(kept_row(TOPIC_OF[type(payload)], raw)[KIND_COLUMN])
    assert kinds == {"joined", "leaving", "left"}


def test_ticks_are_no_heartbeats() -> None:
    """They go to a table of their own, with their places."""
    tick = Tick("c1", 5, Seq(7), Epoch(3))
    records = [RawRow(2, offset, 1_000, b"", encode_input(tick)) for offset in (8, 9)]
    rows, ticks, refused = record_rows(HEARTBEATS, records, default_framing())
    assert (rows.num_rows, refused) == (0, 0)
    assert ticks == [(2, 8, 1_000, tick), (2, 9, 1_000, tick)]


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
    record = RawRow(0, 99, 1_000, b"", encode_dead_letter(letter), is_append_time=True)
    row = tuple(kept_row(DEAD_LETTERS, record).values())
    assert row == (
        DEAD_LETTERS,
        0,
        99,
        1_000,
        "negative",
        "rate is -1",
        HEARTBEATS,
        3,
        17,
        5,
        "controller-1",
        b"\x00\xff",
        2,
    )


@pytest.mark.parametrize("value", [b"junk", None])
def test_record_that_is_no_dead_letter_is_kept(value: bytes | None) -> None:
    """Junk on ``dead-letters`` must neither stop the stream nor vanish: it becomes a row about itself."""
    row = dead_letter_row(0, 99, 1_000, value)
    assert row[0] == "not_avro_framed"
    assert row[2:] == (DEAD_LETTERS, 0, 99, 1_000, "pipeline", value or b"", len(value or b""))
