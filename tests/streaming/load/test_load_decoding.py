"""Load reports to columns of Arrow: what decoding each record for itself gives, and the core's word on it. No Spark."""

import random
from collections.abc import Sequence

import pyarrow as pa

from controlplane.codec.framing import default_framing
from controlplane.codec.inputs import encode_input
from controlplane.config import LOAD_REPORTS
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import LoadReport
from streaming.contracts.records import LOAD_REPORT_COLUMNS
from streaming.load.decoded_rows import DECODED_TYPE
from streaming.load.decoding import decode_batch
from streaming.load.sample_blocks import SAMPLE_SCHEMA
from streaming.records.decode import RawRow, decode_payload
from tests.golden.samples import SAMPLES, damaged
from tests.helpers.pipeline_world import random_report

WEIGHTS = ResourceWeights(direct_memory=0.5)
PLACE = ("partition", "offset", "append_time_ms")
BUNDLE_IDS = [f"kv/0x{index}0000000_0x{index + 1}0000000" for index in range(6)]


def batch_of(records: Sequence[RawRow]) -> pa.RecordBatch:
    """Raw records as Spark passes them."""
    types = (pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary(), pa.bool_())
    columns = zip(*records, strict=True)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(RawRow._fields))


def raw(number: int, report: LoadReport) -> RawRow:
    """A report as a record."""
    return RawRow(number % 3, number, 1_000 + number, report.node_id.encode(), encode_input(report))


def test_columns_are_those_of_each_record() -> None:
    """Every field of usable records, and reason and bytes of refused ones, in the order of the batch."""
    source = random.Random(3)
    reports = [random_report(source, f"n{number}", BUNDLE_IDS, number) for number in range(20)]
    reports += [sample.value for sample in SAMPLES if isinstance(sample.value, LoadReport)]
    records = [raw(number, report) for number, report in enumerate(reports)]
    broken = [case for case in damaged() if case.topic == LOAD_REPORTS]
    records += [RawRow(0, 100 + number, 5, case.key.encode(), case.value) for number, case in enumerate(broken)]
    source.shuffle(records)
    decoded = decode_batch(batch_of(records), default_framing(), WEIGHTS)
    assert [field.name for field in DECODED_TYPE.fields] == decoded.records.schema.names
    assert decoded.samples.schema == SAMPLE_SCHEMA
    kept_rows = iter(decoded.reports.to_pylist())
    samples = iter(decoded.samples.to_pylist())
    row_type = pa.struct([decoded.reports.schema.field(name) for name in LOAD_REPORT_COLUMNS.struct.fieldNames()])
    for record, columns in zip(records, decoded.records.to_pylist(), strict=True):
        refusal, payload = decode_payload(LOAD_REPORTS, record, default_framing())
        row = None if payload is None else LOAD_REPORT_COLUMNS.row(payload)
        assert tuple(columns[name] for name in PLACE) == record[:3]
        told = None if columns["refusal"] is None else (columns["refusal"]["reason"], columns["refusal"]["detail"])
        assert told == refusal
        assert columns["value"] == (None if refusal is None else record.value)
        assert columns["samples"] is columns["file"] is None
        assert (columns["figures"] is None) == (columns["resources"] is None) == (refusal is not None)
        if row is None:
            assert columns["node_id"] is None
            continue
        expected = pa.array([row], row_type).to_pylist()[0]
        kept = next(kept_rows)
        assert {name: kept[name] for name in expected} == expected
        assert (kept["topic"], *(kept[name] for name in PLACE)) == (LOAD_REPORTS, *record[:3])
        assert (columns["node_id"], columns["incarnation"]) == (expected["node_id"], expected["incarnation"])
        assert columns["resources"] == {name: expected[name] for name in Resources._fields}
        for bundle in expected["bundles"]:
            sample = next(samples)
            assert {name: sample[name] for name in bundle} == bundle
            assert tuple(sample[name] for name in PLACE) == record[:3]
            assert (sample["node_id"], sample["incarnation"]) == (expected["node_id"], expected["incarnation"])
    assert next(kept_rows, None) is next(samples, None) is None


def test_a_batch_may_be_refused_whole() -> None:
    """No report means no bundle columns to be made of."""
    decoded = decode_batch(batch_of([RawRow(0, 1, 2, b"n", b"junk")]), default_framing(), WEIGHTS)
    (columns,) = decoded.records.to_pylist()
    assert columns["figures"] is None
    assert columns["refusal"]["reason"] == "not_avro_framed"
    assert decoded.samples.num_rows == decoded.reports.num_rows == 0
