"""The fold of a bucket's columns of Arrow: the bundles that folding one report after the other gives. No Spark runs."""

from collections.abc import Iterable

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE, message_load
from controlplane.core.bundles.load.incarnations import IncarnationReports, cutoffs, newest_nodes
from controlplane.core.bundles.load.reported_state import BundleState, NodeState
from controlplane.core.bundles.load.resource_usage import ResourceWeights
from streaming.load.before_cutoffs import before_cutoffs
from streaming.load.bucket_fold import fold_bucket
from streaming.load.sample_blocks import blocks_of, samples_in
from tests.helpers.load_logs import (
    BUNDLE_IDS,
    BUNDLE_SCHEMA,
    bundles_in,
    cut_logs,
    logs_in_batches,
    report,
    sample_table,
    split_at_chunks,
)
from tests.helpers.pipeline_world import bundle_load
from tests.helpers.placed_report import PlacedReport
from tests.helpers.plain_load import PlainLoad

WEIGHTS = ResourceWeights(direct_memory=0.5)
BUCKETS = (3, 8)


class ColumnLoad:
    """What the stream does with each batch, without Spark: samples go to their buckets in blocks."""

    def __init__(self, chunk_size: int = 1_000) -> None:
        """Before the first batch."""
        self.tables: dict[int, pa.Table] = {bucket: BUNDLE_SCHEMA.empty_table() for bucket in BUCKETS}
        self.nodes: dict[str, NodeState] = {}
        self._chunk_size = chunk_size

    def fold(self, batch: Iterable[PlacedReport]) -> None:
        """Take the reports that count apart, fold their samples, and take the nodes over."""
        batch = list(batch)
        processes = {(each.node_id, each.incarnation) for each in batch}
        reports = [reports_of(node_id, incarnation, batch) for node_id, incarnation in processes]
        ends = cutoffs(reports, self.nodes)
        parts = split_at_chunks(sample_table(batch), self._chunk_size).to_batches()
        blocks = [block for part in parts for block in blocks_of(pa.Table.from_batches([part]), BUCKETS)]
        for bucket in {block.bucket for block in blocks}:
            packed = pa.chunked_array([[block.samples for block in blocks if block.bucket == bucket]], pa.binary())
            samples = before_cutoffs(samples_in(packed), ends)
            if samples.num_rows:
                stored = split_at_chunks(self.tables[bucket], self._chunk_size)
                self.tables[bucket] = fold_bucket(stored, samples, bucket)
                assert set(self.tables[bucket]["bucket"].to_pylist()) <= {bucket}
        for node in newest_nodes(reports):
            self.nodes[node.node_id] = node.after(self.nodes.get(node.node_id))

    @property
    def bundles(self) -> dict[str, BundleState]:
        """By id."""
        return bundles_in(pa.concat_tables(self.tables.values()))


def reports_of(node_id: str, incarnation: int, batch: Iterable[PlacedReport]) -> IncarnationReports:
    """The reports of one process in a batch, as the driver sees them; they are in one partition."""
    of_process = (each for each in batch if (each.node_id, each.incarnation) == (node_id, incarnation))
    mine = sorted(of_process, key=lambda each: each.position.offset)
    states: list[NodeState] = []
    for each in mine:
        alone = PlainLoad()
        alone.fold([each], WEIGHTS)
        states += alone.nodes.values()
    first, newest = (states[0].position, states[-1]) if states else (None, None)
    return IncarnationReports(node_id, incarnation, first, newest)


@given(logs_in_batches() | cut_logs(), st.integers(1, 3))
def test_batches_fold_as_the_log_does(
    case: tuple[list[PlacedReport], list[list[PlacedReport]]], chunk_size: int
) -> None:
    """Batches that are cut anywhere, disordered or repeated, replaced processes and figures that cannot be true.

    Clocks go back, too.
    """
    log, batches = case
    plain, made = PlainLoad(), ColumnLoad(chunk_size)
    plain.fold(log, WEIGHTS)
    for batch in batches:
        made.fold(batch)
    assert made.bundles == plain.bundles
    assert made.nodes == plain.nodes


def test_a_row_tells_where_the_bundle_is_and_when_it_moved() -> None:
    """A bundle's row names the last reporter, its newest figures, and since when it has been with another node."""
    told = [("n1", 3), ("n1", 4), ("n2", 5), ("n2", 6)]
    made = ColumnLoad()
    made.fold(
        report(node_id, number, [bundle_load(BUNDLE_IDS[0], topics=topics)], partition=number // 2)
        for number, (node_id, topics) in enumerate(told)
    )
    bundle = made.bundles[BUNDLE_IDS[0]]
    assert (bundle.node_id, bundle.moved_at_ms, bundle.newest.topic_count) == ("n2", 102, 6)
    assert (bundle.first_report_time_ms, bundle.position) == (100, (103, 1, 3))
    assert bundle.folded_offsets == {0: 1, 1: 3}


def test_a_report_of_a_former_life_does_not_count() -> None:
    """A process that was replaced and wakes up once more says nothing of the bundles or of its successor's usage."""
    bundle = bundle_load(BUNDLE_IDS[0], 10.0)
    made = ColumnLoad()
    made.fold([report("n1", 0, [bundle], incarnation=1), report("n1", 1, [bundle], incarnation=2)])
    made.fold([report("n1", 2, [bundle_load(BUNDLE_IDS[0], 9_000.0)], incarnation=1)])
    assert made.bundles[bundle.bundle_id].averages == UNSEEN_BUNDLE.add(message_load(bundle)).add(message_load(bundle))
    assert made.nodes["n1"].position.offset == 1


def test_a_batch_without_plausible_samples_changes_no_bundle() -> None:
    """The first one of a bundle leaves no row, a later one leaves the row as it is."""
    good, wrong = bundle_load(BUNDLE_IDS[0]), bundle_load(BUNDLE_IDS[0])._replace(throughput_in_bytes_per_s=1e308)
    made = ColumnLoad()
    made.fold([report("n1", 0, [wrong])])
    assert made.bundles == {}
    made.fold([report("n1", 1, [good])])
    before = made.bundles
    made.fold([report("n1", 2, [wrong])])
    assert made.bundles == before
