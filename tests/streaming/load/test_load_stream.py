"""The stream of load reports on a real broker and real tables: history, dead letters, averages, candidates."""

from dataclasses import replace

from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from controlplane.codec.inputs import encode_input
from controlplane.codec.outputs import decode_candidate, decode_dead_letter
from controlplane.config import CANDIDATES, DEAD_LETTERS, LOAD_REPORTS
from controlplane.core.bundles.load.resource_usage import ResourceWeights, weighted_usage
from controlplane.core.bundles.reports import BundleLoad, LoadReport
from controlplane.core.bundles.shedding.threshold import ThresholdSettings
from controlplane.core.bundles.splitting.limits import SplitSettings
from streaming.config import LoadRuleConfig
from streaming.contracts.loads import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
)
from streaming.contracts.records import DEAD_LETTERS_TABLE, LOAD_REPORTS_TABLE
from streaming.jobs.load import start_load
from streaming.jobs.records import start_records
from streaming.metrics import PipelineMetrics
from streaming.tables.table_writer import TableWriter
from tests.golden.samples import damaged
from tests.helpers.pipeline_world import PipelineWorld, bundle_load, load_report, read_all

MIB = 1_048_576
EAGER = LoadRuleConfig(
    split=SplitSettings(max_message_rate_per_s=100),
    shed=ThresholdSettings(min_throughput_mib_per_s=1),
    evaluation_interval_ms=1,
)


def usage(cpu_percent: float) -> float:
    """A node's weighted usage, rounded as the published rule rounds it."""
    return weighted_usage(load_report("node", cpu_percent=cpu_percent), ResourceWeights())


def test_bad_reports_become_dead_letters_and_neighbours_count(spark: SparkSession, world: PipelineWorld) -> None:
    """Bad records cost no other one anything: each is a dead letter with reason, bytes and place, the rest is kept."""
    good = encode_input(load_report("node-1"))
    refused = [
        (b"node-1", good[:-1], "truncated"),
        (b"node-1", b"\x00" * 300_000, "record_too_large"),
        (b"node-2", good, "key_mismatch"),
        (b"node-1", None, "missing_value"),
        *((case.key.encode(), case.value, case.reason) for case in damaged() if case.topic == LOAD_REPORTS),
    ]
    bundle = bundle_load("kv/0x00000000_0x40000000")
    for number, (key, value, _) in enumerate(refused):
        world.report(load_report("node-1", [bundle], number=number))
        world.send(LOAD_REPORTS, key, value)
    registry = CollectorRegistry()
    config = world.config()
    metrics = PipelineMetrics(registry)
    read_all(lambda: start_load(spark, config, metrics))
    read_all(lambda: start_records(spark, config, DEAD_LETTERS, metrics))

    kept = world.rows(spark, LOAD_REPORTS_TABLE)
    assert sorted(row["sent_at_ms"] for row in kept) == list(range(len(refused)))
    assert all(row["bundles"][0]["bundle_id"] == bundle.bundle_id for row in kept)
    (averages,) = world.rows(spark, BUNDLE_LOAD_TABLE)
    assert averages["long_term"]["sample_count"] == len(refused)

    letters = {key: decode_dead_letter(value) for key, value in world.received(DEAD_LETTERS, len(refused))}
    assert sorted(letter.reason for letter in letters.values()) == sorted(reason for *_, reason in refused)
    for key, letter in letters.items():
        assert key == f"{LOAD_REPORTS}[{letter.partition}]@{letter.offset}".encode()
        assert (letter.topic, letter.writer) == (LOAD_REPORTS, "pipeline")
    by_reason = {letter.reason: letter for letter in letters.values()}
    assert by_reason["truncated"].raw == good[:-1]
    assert (len(by_reason["record_too_large"].raw), by_reason["record_too_large"].raw_length_bytes) == (65_536, 300_000)
    assert registry.get_sample_value("controlplane_pipeline_dead_letters_total", {"reason": "truncated"}) == 1

    rows = world.rows(spark, DEAD_LETTERS_TABLE)
    assert {(row["source_partition"], row["source_offset"], row["reason"]) for row in rows} == {
        (letter.partition, letter.offset, letter.reason) for letter in letters.values()
    }


def test_batches_fold_and_candidates_appear_once(spark: SparkSession, world: PipelineWorld) -> None:
    """With lowered thresholds a hot bundle is proposed for a split and for its node to shed, each once."""
    hot, warm, cold = (f"kv/0x{index}0000000_0x{index + 4}0000000" for index in (0, 4, 8))
    config = world.config(rules=EAGER)
    metrics = PipelineMetrics(CollectorRegistry())
    busy = [bundle_load(hot, 1_000.0, 40.0 * MIB), bundle_load(warm, 10.0, 20.0 * MIB)]
    world.report(
        load_report("node-1", busy, cpu_percent=90), load_report("node-2", [bundle_load(cold)], cpu_percent=10)
    )
    read_all(lambda: start_load(spark, config, metrics))
    world.report(load_report("node-2", [bundle_load(cold)], cpu_percent=20))
    read_all(lambda: start_load(spark, config, metrics))

    (split,) = world.rows(spark, SPLIT_CANDIDATES_TABLE)
    assert (split["bundle_id"], split["node_id"], split["namespace"]) == (hot, "node-1", "kv")
    assert [tuple(each) for each in split["exceeded"]] == [("message_rate_per_s", 1_000.0, 100.0)]
    (shed,) = world.rows(spark, SHED_CANDIDATES_TABLE)
    assert (shed["bundle_id"], shed["node_id"]) == (hot, "node-1")
    assert (shed["smoothed_usage"], shed["mean_usage"]) == (usage(90), (usage(90) + usage(10)) / 2)

    produced = [decode_candidate(value) for _, value in world.received(CANDIDATES, 2)]
    assert {each.candidate_id for each in produced} == {split["candidate_id"], shed["candidate_id"]}
    by_action = {each.action: each for each in produced}
    assert by_action["split"].evidence == {"message_rate_per_s": "1000.0", "max_message_rate_per_s": "100"}
    assert by_action["shed"].evidence["smoothed_usage"] == repr(shed["smoothed_usage"])
    assert by_action["split"].window_end_ms == split["window_end_ms"]

    one, two = world.rows(spark, BROKER_LOAD_TABLE)
    assert one["smoothed_usage"] == usage(90) * 0.9 + (1 - 0.9) * usage(90)
    assert two["smoothed_usage"] == usage(10) * 0.9 + (1 - 0.9) * usage(20)
    assert [row["long_term"]["sample_count"] for row in world.rows(spark, BUNDLE_LOAD_TABLE)] == [1, 1, 2]
    assert (one["owned_bundle_count"], two["owned_bundle_count"]) == (2, 1)
    assert one["short_term"]["throughput_in_bytes_per_s"] == 30.0 * MIB


def test_published_thresholds_find_nothing_in_small_traffic(spark: SparkSession, world: PipelineWorld) -> None:
    """With the defaults a small cluster's traffic is no reason to split or shed anything."""
    busy = [bundle_load("kv/0x00000000_0x40000000", 20_000.0, 40.0 * MIB), bundle_load("kv/0x40000000_0x80000000")]
    world.report(load_report("node-1", busy, cpu_percent=15), load_report("node-2", [], cpu_percent=10))
    read_all(lambda: start_load(spark, world.config(), PipelineMetrics(CollectorRegistry())))
    assert world.rows(spark, SPLIT_CANDIDATES_TABLE) == []
    assert world.rows(spark, SHED_CANDIDATES_TABLE) == []
    assert [row["smoothed_usage"] for row in world.rows(spark, BROKER_LOAD_TABLE)] == [usage(15), usage(10)]


def test_figures_that_cannot_be_true_are_passed_over_and_told(spark: SparkSession, world: PipelineWorld) -> None:
    """Such reports pass the codec and stay in the history; their neighbours' averages and candidates are as without."""
    one, two, wild = (f"kv/0x{index}0000000_0x{index + 4}0000000" for index in (0, 4, 8))
    busy = [bundle_load(one, 10.0, 40.0 * MIB), bundle_load(two, 10.0, 20.0 * MIB)]
    world.report(
        load_report("node-1", busy, cpu_percent=90),
        load_report("node-2", [bundle_load(wild)], cpu_percent=10),
        load_report("node-2", [bundle_load(wild, bytes_per_s=1e308)], cpu_percent=1e300, number=1),
    )
    registry = CollectorRegistry()
    metrics = PipelineMetrics(registry)
    read_all(lambda: start_load(spark, world.config(rules=EAGER), metrics))
    assert len(world.rows(spark, LOAD_REPORTS_TABLE)) == 3
    rows = world.rows(spark, BUNDLE_LOAD_TABLE)
    assert [row["long_term"]["sample_count"] for row in rows] == [1, 1, 1]
    assert [row["weighted_usage"] for row in world.rows(spark, BROKER_LOAD_TABLE)] == [usage(90), usage(10)]
    (shed,) = world.rows(spark, SHED_CANDIDATES_TABLE)
    assert (shed["bundle_id"], shed["mean_usage"]) == (one, (usage(90) + usage(10)) / 2)
    name = "controlplane_pipeline_implausible_figures_total"
    assert registry.get_sample_value(name, {"figure": "cpu"}) == 1
    assert registry.get_sample_value(name, {"figure": "throughput_in_bytes_per_s"}) == 1


def test_reports_of_replaced_processes_do_not_count(spark: SparkSession, world: PipelineWorld) -> None:
    """In the batch in which the process was replaced, and in later ones; its successor's figures stay."""
    bundle = bundle_load("kv/0x00000000_0x40000000")
    wild = bundle_load(bundle.bundle_id, bytes_per_s=7_000.0)

    def report(incarnation: int, cpu_percent: float, load: BundleLoad) -> LoadReport:
        return replace(load_report("node-1", [load], cpu_percent), incarnation=incarnation)

    config, metrics = world.config(), PipelineMetrics(CollectorRegistry())
    world.report(report(1, 10, bundle), report(2, 20, bundle), report(1, 90, wild))
    read_all(lambda: start_load(spark, config, metrics))
    world.report(report(1, 90, wild))
    read_all(lambda: start_load(spark, config, metrics))
    assert len(world.rows(spark, LOAD_REPORTS_TABLE)) == 4
    (row,) = world.rows(spark, BUNDLE_LOAD_TABLE)
    assert row["long_term"]["sample_count"] == 2
    assert row["throughput_in_bytes_per_s"] == bundle.throughput_in_bytes_per_s
    (node,) = world.rows(spark, BROKER_LOAD_TABLE)
    assert (node["incarnation"], node["weighted_usage"]) == (2, usage(20))


def test_a_batch_with_nothing_usable_changes_no_averages(spark: SparkSession, world: PipelineWorld) -> None:
    """Its records are dead letters, its number is in the table that is written last, and the stream goes on."""
    world.send(LOAD_REPORTS, b"node-1", b"junk")
    config, metrics = world.config(), PipelineMetrics(CollectorRegistry())
    query = read_all(lambda: start_load(spark, config, metrics))
    assert world.rows(spark, BUNDLE_LOAD_TABLE) == world.rows(spark, BROKER_LOAD_TABLE) == []
    assert TableWriter(world.tables_dir, BROKER_LOAD_TABLE, str(query.id)).written_version == 0, "the batch is done"
    world.report(load_report("node-1"))
    read_all(lambda: start_load(spark, config, metrics))
    assert [row["bundle_count"] for row in world.rows(spark, BROKER_LOAD_TABLE)] == [0]
