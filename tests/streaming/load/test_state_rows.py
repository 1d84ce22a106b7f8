"""Nodes and bundles as rows: what reading the tables gives back is what was written. No Spark runs."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from controlplane.core.bundles.load.averages import MessageLoad
from controlplane.core.bundles.load.reported_state import BundleSums
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from streaming.contracts.loads import BROKER_LOAD_TABLE, BUNDLE_LOAD_TABLE
from streaming.load.state_rows import bundle_of, node_of, node_row
from tests.helpers.load_logs import logs
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainLoad, bundle_row

LOADS = st.builds(MessageLoad, *[st.floats(0, 1e9)] * 4)
SUMS = st.none() | st.builds(BundleSums, st.integers(0, 9), LOADS, LOADS)


@given(logs(), SUMS, st.none() | st.floats(0, 100))
def test_rows_keep_the_whole_state(log: list[PlacedReport], sums: BundleSums | None, smoothed: float | None) -> None:
    """Nodes that were never evaluated, too."""
    plain = PlainLoad()
    plain.fold(log, ResourceWeights())
    nodes = [
        node._replace(sums=sums, smoothed_usage=smoothed, smoothed_at_ms=None if smoothed is None else 7)
        for node in plain.nodes.values()
    ]
    stored = pa.Table.from_pylist(list(map(node_row, nodes)), schema=to_arrow_schema(BROKER_LOAD_TABLE.schema))
    assert list(map(node_of, stored.to_pylist())) == nodes
    bundles = list(plain.bundles.values())
    rows = [dict(zip(BUNDLE_LOAD_TABLE.columns, bundle_row(bundle), strict=True)) for bundle in bundles]
    stored = pa.Table.from_pylist(rows, schema=to_arrow_schema(BUNDLE_LOAD_TABLE.schema))
    assert list(map(bundle_of, stored.to_pylist(maps_as_pydicts="strict"))) == bundles
