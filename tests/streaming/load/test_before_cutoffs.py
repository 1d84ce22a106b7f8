"""The samples that count: those whose report stands before the cutoff of its incarnation. No Spark runs."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.load.incarnations import Cutoff
from controlplane.core.bundles.load.reported_state import Position
from streaming.load.before_cutoffs import before_cutoffs
from tests.helpers.load_logs import report, sample_table
from tests.helpers.pipeline_world import bundle_load

POSITIONS = st.builds(Position, st.integers(0, 3), st.integers(0, 2), st.integers(0, 3))


def test_incarnations_are_told_apart_by_node_and_number() -> None:
    """Of ``n1`` in its 11th incarnation nothing counts; ``n11`` in its first one, which reads alike, has no cutoff."""
    reports = [
        report(node_id, number, [bundle_load("a/b")], incarnation=incarnation)
        for number, (node_id, incarnation) in enumerate([("n1", 11), ("n11", 1), ("n1", 1), ("n1", 11), ("n1", 1)])
    ]
    ends = [Cutoff("n1", 11, None), Cutoff("n1", 1, Position(104, 0, 3))]
    assert before_cutoffs(sample_table(reports), ends)["offset"].to_pylist() == [1, 2]


@given(POSITIONS, POSITIONS)
def test_a_sample_counts_if_its_report_stands_before_the_cutoff(position: Position, end: Position) -> None:
    """By the core's order of positions, also between partitions."""
    samples = sample_table([report("n", 0, [bundle_load("a/b")])])
    for name, value in position._asdict().items():
        place = samples.schema.get_field_index(name)
        samples = samples.set_column(
            place, samples.schema.field(name), pa.array([value], samples.schema.field(name).type)
        )
    counted = before_cutoffs(samples, [Cutoff("n", 1, end)])
    assert counted.num_rows == end.is_behind(position)
