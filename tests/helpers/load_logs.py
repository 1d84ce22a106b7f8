"""Load reports as Hypothesis draws them, and the columns in which executors see them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import hypothesis.strategies as st
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.core.bundles.load.reported_state import BundleState, Position
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad, ResourceUsage
from streaming.contracts.loads import BUNDLE_LOAD_TABLE
from streaming.load.sample_blocks import SAMPLE_SCHEMA
from streaming.load.state_rows import bundle_of
from tests.helpers.cut_partitions import cut_partitions
from tests.helpers.placed_report import PlacedReport

BUNDLE_SCHEMA = to_arrow_schema(BUNDLE_LOAD_TABLE.schema)
BUNDLE_IDS = [f"team/{namespace}/0x{index:08x}_0x{index + 1:08x}" for namespace in "ab" for index in range(2)]
UNKNOWN = ResourceUsage(-1.0, -1.0)
_FIGURES = st.sampled_from([*(number / 3 for number in range(27)), -1.0, float("nan"), 1e300]) | st.floats(0, 1e9)
_COUNTS = st.integers(0, 2_000)
_USAGES = st.builds(
    ResourceUsage, st.sampled_from([*map(float, range(19)), 1e300]), st.sampled_from([-1.0, 100.0, 400.0])
)
"""One of 20 may be beyond what can be true."""
_BUNDLES = st.lists(
    st.builds(BundleLoad, st.sampled_from(BUNDLE_IDS), *[_FIGURES] * 4, *[_COUNTS] * 4),
    unique_by=lambda bundle: bundle.bundle_id,
    max_size=4,
)


@st.composite
def logs(draw: st.DrawFn) -> list[PlacedReport]:
    """Reports of three nodes in two partitions; a node's reports stay in one, and append times may be equal.

    A process may be replaced, and the replaced one may go on reporting.
    """
    time_ms = 1_000
    log: list[PlacedReport] = []
    ends = [0, 0]
    for _ in range(draw(st.integers(1, 12))):
        time_ms += draw(st.sampled_from([0, 0, 1, 500]))
        node = draw(st.integers(0, 2))
        partition = node % 2
        resources = Resources(*(draw(_USAGES) for _ in Resources._fields))
        position = Position(time_ms, partition, ends[partition])
        ends[partition] += draw(st.sampled_from([1, 1, 2]))
        incarnation = draw(st.sampled_from([1, 1, 2, 3]))
        log.append(PlacedReport(position, f"n{node}", incarnation, resources, "1", draw(_BUNDLES)))
    return sorted(log, key=lambda each: each.position)


@st.composite
def cut_logs(draw: st.DrawFn) -> tuple[list[PlacedReport], list[list[PlacedReport]]]:
    """A log in which times fall and rise within each partition, and the same in batches: each partition cut anywhere.

    Nodes and bundles stay in one partition each, so that there is but one order of what is known of them.
    """

    def report_at(position: Position) -> PlacedReport:
        partition = position.partition
        node_id = draw(st.sampled_from([f"n{partition}", f"n{partition + 2}"]))
        resources = Resources(*(draw(_USAGES) for _ in Resources._fields))
        bundles = [each for each in draw(_BUNDLES) if BUNDLE_IDS.index(each.bundle_id) % 2 == partition]
        incarnation = draw(st.sampled_from([1, 1, 2, 3]))
        return PlacedReport(position, node_id, incarnation, resources, "1", bundles)

    batches = cut_partitions(draw, report_at)
    return [each for batch in batches for each in batch], [draw(st.permutations(batch)) for batch in batches]


@st.composite
def logs_in_batches(draw: st.DrawFn) -> tuple[list[PlacedReport], list[list[PlacedReport]]]:
    """A log, and the same in batches of which some come twice, each in an order of its own."""
    log = draw(logs())
    cuts = sorted({0, len(log), *draw(st.lists(st.integers(0, len(log)), max_size=4))})
    batches = []
    for start, end in pairwise(cuts):
        batches += [draw(st.permutations(log[start:end])) for _ in range(draw(st.integers(1, 2)))]
    return log, batches


def report(
    node_id: str, number: int, bundles: Iterable[BundleLoad] = (), *, partition: int = 0, incarnation: int = 1
) -> PlacedReport:
    """A report at this offset, as many milliseconds after the beginning."""
    resources = Resources(ResourceUsage(number, 100.0), *(UNKNOWN,) * 4)
    return PlacedReport(Position(100 + number, partition, number), node_id, incarnation, resources, "1", list(bundles))


def sample_table(reports: Iterable[PlacedReport]) -> pa.Table:
    """The samples of reports, as executors take them from records."""
    samples = [
        (*each.position[1:], each.position.append_time_ms, each.node_id, each.incarnation, *bundle)
        for each in reports
        for bundle in each.bundles
    ]
    rows = [dict(zip(SAMPLE_SCHEMA.names, sample, strict=True)) for sample in samples]
    return pa.Table.from_pylist(rows, SAMPLE_SCHEMA)


def bundles_in(table: pa.Table) -> dict[str, BundleState]:
    """The bundles in rows of ``bundle_load``."""
    rows = table.to_pylist(maps_as_pydicts="strict")
    states = [bundle_of(row) for row in rows]
    assert len({state.bundle_id for state in states}) == len(states)
    assert [row["namespace"] for row in rows] == [state.namespace for state in states]
    return {state.bundle_id: state for state in states}


def split_at_chunks(table: pa.Table, size: int) -> pa.Table:
    """The same rows in chunks: Spark passes them in several batches."""
    chunks: Sequence[pa.RecordBatch] = table.to_batches(max_chunksize=size)
    return pa.Table.from_batches(chunks, table.schema)
