"""Load reports folded into each bundle's averages, as :mod:`controlplane.core.load.averages` folds them.

The fold runs inside Spark because it is the one rule that meets every sample; it does the core's operations in the
core's order, so it gives the core's bits (``tests/streaming/test_averages.py``).
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from controlplane.core.load.averages import UNSEEN_BUNDLE, MessageLoad, TimeAverage
from controlplane.core.records import BundleLoad
from streaming.table_contracts import BUNDLE_LOAD_TABLE, TIME_AVERAGE_TYPE

FIGURES: Final = MessageLoad._fields
_COLUMNS: Final = BUNDLE_LOAD_TABLE.columns
_STATE_COLUMNS: Final = tuple(name for name in _COLUMNS if name not in ("bundle_id", "namespace"))
_AVERAGES: Final = ("short_term", "long_term")
_LATEST: Final = BundleLoad._fields[1:]
_POSITION: Final = ("append_time_ms", "partition", "offset")
"""The order in which samples fold."""
_NAMESPACE: Final = "left(bundle_id, length(bundle_id) - instr(reverse(bundle_id), '/'))"


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
    fresh = joined.select("bundle_id", "state", F.filter("samples", _is_new).alias("fresh"))
    averaged = fresh.select(
        "bundle_id",
        "state",
        "fresh",
        F.try_element_at("fresh", F.lit(-1)).alias("last"),
        F.aggregate("fresh", _averages_before(), _add).alias("averages"),
    )
    return averaged.select(*_columns_after()).select(*_COLUMNS)


def _is_new(sample: Column) -> Column:
    folded_until = F.try_element_at(F.col("state.folded_offsets"), sample["partition"])
    return folded_until.isNull() | (sample["offset"] > folded_until)


def _averages_before() -> Column:
    """Both averages of the row, or those of a bundle that nobody has reported."""
    return F.struct(
        *(F.coalesce(F.col(f"state.{name}"), _unseen(getattr(UNSEEN_BUNDLE, name))).alias(name) for name in _AVERAGES)
    )


def _unseen(average: TimeAverage) -> Column:
    figures = (F.lit(value).alias(name) for name, value in zip(FIGURES, average.load, strict=True))
    return F.struct(F.lit(average.sample_count).cast("long").alias("sample_count"), *figures).cast(TIME_AVERAGE_TYPE)


def _add(averages: Column, sample: Column) -> Column:
    """Both averages with one more sample."""
    added = (_averaged(averages[name], sample, getattr(UNSEEN_BUNDLE, name)).alias(name) for name in _AVERAGES)
    return F.struct(*added)


def _averaged(average: Column, sample: Column, rule: TimeAverage) -> Column:
    """``TimeAverage.add``: the same operations in the same order."""
    count = F.least(average["sample_count"] + 1, F.lit(rule.max_samples).cast("long"))
    means = [(((count - 1) * average[name] + sample[name]) / count).alias(name) for name in FIGURES]
    return F.struct(count.alias("sample_count"), *means)


def _columns_after() -> list[Column]:
    """The row's columns after its new samples: most of them are the last sample's."""
    sources = {"report_time_ms": "append_time_ms", "report_partition": "partition", "report_offset": "offset"}
    sources |= {name: name for name in ("node_id", *_LATEST)}
    first_time = F.get("fresh", F.lit(0))["append_time_ms"]
    return [
        F.col("bundle_id"),
        F.expr(_NAMESPACE).alias("namespace"),
        # Without a new sample the row stays as it is.
        *(F.coalesce(f"last.{theirs}", f"state.{ours}").alias(ours) for ours, theirs in sources.items()),
        F.coalesce("state.first_report_time_ms", first_time).alias("first_report_time_ms"),
        _moved_at(first_time).alias("moved_at_ms"),
        *(F.col(f"averages.{name}").cast(TIME_AVERAGE_TYPE).alias(name) for name in _AVERAGES),
        _folded_offsets().alias("folded_offsets"),
    ]


def _moved_at(first_time: Column) -> Column:
    """Since when the last sample's node has had the bundle; null if no other node is known."""
    last_foreign = F.array_max(F.filter("fresh", lambda sample: sample["node_id"] != F.col("last.node_id")))
    since = F.array_min(F.filter("fresh", lambda sample: sample > last_foreign))["append_time_ms"]
    return (
        F.when(last_foreign.isNotNull(), since)
        .when(F.col("state.node_id") != F.col("last.node_id"), first_time)
        .otherwise(F.col("state.moved_at_ms"))
    )


def _folded_offsets() -> Column:
    """The row's offsets, with the greatest new one of each partition."""
    partitions = F.array_distinct(F.transform("fresh", lambda sample: sample["partition"]))
    newest = F.map_from_entries(F.transform(partitions, lambda partition: F.struct(partition, _greatest(partition))))
    former = F.coalesce("state.folded_offsets", F.create_map().cast("map<int,bigint>"))
    kept = F.map_filter(former, lambda partition, _: ~F.array_contains(partitions, partition))
    return F.map_concat(kept, newest)


def _greatest(partition: Column) -> Column:
    same = F.filter("fresh", lambda sample: sample["partition"] == partition)
    return F.array_max(F.transform(same, lambda sample: sample["offset"]))


def array_sum(items: Column, name: str) -> Column:
    """The sum of one figure over an array of structs, in the array's order: a float sum depends on it."""
    return F.aggregate(items, F.lit(0.0), lambda total, item: total + item[name])


def message_load_sums(items: Column) -> Column:
    """The four figures summed over an array of structs, in the array's order."""
    return F.struct(*(array_sum(items, name).alias(name) for name in FIGURES))
