"""Load reports folded into each bundle's averages, as :mod:`controlplane.core.load.averages` folds them.

The fold runs inside Spark because it is the one rule that meets every sample; it does the core's operations in the
core's order, so it gives the core's bits (``tests/streaming/test_averages.py``).
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import StructField, StructType

from controlplane.core.load.averages import UNSEEN_BUNDLE, MessageLoad, TimeAverage
from controlplane.core.records import BundleLoad
from streaming.table_contracts import BUNDLE_LOAD_TABLE, TIME_AVERAGE_TYPE

FIGURES: Final = MessageLoad._fields
_STATE_COLUMNS: Final = tuple(name for name in BUNDLE_LOAD_TABLE.columns if name not in ("bundle_id", "namespace"))
_LATEST: Final = BundleLoad._fields[1:]
_POSITION: Final = ("append_time_ms", "partition", "offset")
"""The order in which samples fold."""


def bundle_samples(reports: DataFrame) -> DataFrame:
    """One row for each bundle of each report: its position in the log, the node, and the bundle's figures.

    Args:
        reports: rows of ``load_reports``.
    """
    exploded = reports.select(*_POSITION, "node_id", F.explode("bundles").alias("bundle"))
    return exploded.select(
        "bundle.bundle_id", F.struct(*_POSITION, "node_id", *(f"bundle.{name}" for name in _LATEST)).alias("sample")
    )


def folded_bundles(samples: DataFrame, current: DataFrame) -> DataFrame:
    """The rows of ``bundle_load`` for every bundle that has a sample.

    A sample counts once: those at or below the row's ``folded_offsets`` of their partition are passed over, so
    folding the same samples again changes nothing.

    Args:
        samples: as :func:`bundle_samples` gives them.
        current: the table ``bundle_load`` before.
    """
    state = F.struct(*(F.col(name) for name in _STATE_COLUMNS)).alias("state")
    grouped = samples.groupBy("bundle_id").agg(F.sort_array(F.collect_list("sample")).alias("samples"))
    joined = grouped.join(current.select("bundle_id", state), on="bundle_id", how="left")
    fresh = F.filter("samples", _is_new)
    folded = joined.select("bundle_id", F.aggregate(fresh, F.coalesce("state", _first_state()), _add).alias("state"))
    namespace = F.expr("left(bundle_id, length(bundle_id) - instr(reverse(bundle_id), '/'))")
    return folded.select("bundle_id", namespace.alias("namespace"), "state.*").select(*BUNDLE_LOAD_TABLE.columns)


def _is_new(sample: Column) -> Column:
    folded_until = F.try_element_at(F.col("state.folded_offsets"), sample["partition"])
    return folded_until.isNull() | (sample["offset"] > folded_until)


def _add(state: Column, sample: Column) -> Column:
    """The state with one more sample."""
    moved = state["node_id"].isNotNull() & (state["node_id"] != sample["node_id"])
    kept_offsets = F.map_filter(state["folded_offsets"], lambda partition, _: partition != sample["partition"])
    values = {
        "node_id": sample["node_id"],
        "report_time_ms": sample["append_time_ms"],
        "report_partition": sample["partition"],
        "report_offset": sample["offset"],
        "first_report_time_ms": F.coalesce(state["first_report_time_ms"], sample["append_time_ms"]),
        "moved_at_ms": F.when(moved, sample["append_time_ms"]).otherwise(state["moved_at_ms"]),
        **{name: sample[name] for name in _LATEST},
        "short_term": _averaged(state["short_term"], sample, UNSEEN_BUNDLE.short_term),
        "long_term": _averaged(state["long_term"], sample, UNSEEN_BUNDLE.long_term),
        "folded_offsets": F.map_concat(kept_offsets, F.create_map(sample["partition"], sample["offset"])),
    }
    return _state(values)


def _averaged(average: Column, sample: Column, rule: TimeAverage) -> Column:
    """``TimeAverage.add``: the same operations in the same order."""
    count = F.least(average["sample_count"] + 1, F.lit(rule.max_samples).cast("long"))
    means = [(((count - 1) * average[name] + sample[name]) / count).alias(name) for name in FIGURES]
    return F.struct(count.alias("sample_count"), *means).cast(TIME_AVERAGE_TYPE)


def _first_state() -> Column:
    """The state of a bundle that nobody has reported."""
    averages = {
        name: F.struct(
            F.lit(average.sample_count).cast("long").alias("sample_count"),
            *(F.lit(value).alias(figure) for figure, value in zip(FIGURES, average.load, strict=True)),
        ).cast(TIME_AVERAGE_TYPE)
        for name, average in (("short_term", UNSEEN_BUNDLE.short_term), ("long_term", UNSEEN_BUNDLE.long_term))
    }
    none = {name: F.lit(None) for name in _STATE_COLUMNS if name not in averages}
    return _state({**none, **averages, "folded_offsets": F.create_map().cast("map<int,bigint>")})


def _state(values: dict[str, Column]) -> Column:
    types = {each.name: each.dataType for each in BUNDLE_LOAD_TABLE.fields}
    struct = StructType([StructField(name, types[name]) for name in _STATE_COLUMNS])
    return F.struct(*(values[name].alias(name) for name in _STATE_COLUMNS)).cast(struct)


def array_sum(items: Column, name: str) -> Column:
    """The sum of one figure over an array of structs, in the array's order: a float sum depends on it."""
    return F.aggregate(items, F.lit(0.0), lambda total, item: total + item[name])


def message_load_sums(items: Column) -> Column:
    """The four figures summed over an array of structs, in the array's order."""
    return F.struct(*(array_sum(items, name).alias(name) for name in FIGURES))
