"""Rows of ``bundle_load`` of bundles that decisions have ended."""

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from controlplane.core.bundles.load.resource_usage import ResourceWeights
from streaming.contracts.changes import BUNDLE_CHANGES_TABLE, BUNDLES_TABLE
from streaming.contracts.loads import BUNDLE_LOAD_TABLE
from streaming.load.bucket_files import bucket_files
from streaming.load.gone_bundles import REST_MS, GoneBundles, files_without
from streaming.tables.created_tables import create_missing
from streaming.tables.driver_tables import DriverTable
from tests.helpers.load_logs import report
from tests.helpers.pipeline_world import bundle_load
from tests.helpers.plain_load import PlainLoad, bundle_row

NOW_MS = 100 * REST_MS


def change(bundle_id: str, append_time_ms: int, *, ended: bool) -> dict[str, Any]:
    """A row of ``bundle_changes``."""
    empty = dict.fromkeys(BUNDLE_CHANGES_TABLE.columns)
    numbers = dict.fromkeys(("seq", "epoch", "term", "decided_at_ms"), 1)
    texts = {"namespace": "kv", "day": date(2026, 1, 1), "cause_kinds": [], "causes": []}
    return {**empty, **numbers, **texts, "bundle_id": bundle_id, "append_time_ms": append_time_ms, "ended": ended}


def present(bundle_id: str) -> dict[str, Any]:
    """A row of ``bundles``."""
    numbers = dict.fromkeys(("bucket", "seq", "append_time_ms", "epoch", "owner_epoch", "version"), 1)
    texts = {"namespace": "kv", "state": "Owned", "parent": "", "is_forced": False}
    return {**dict.fromkeys(BUNDLES_TABLE.columns), **numbers, **texts, "bundle_id": bundle_id}


def test_bundles_are_looked_for_until_no_late_report_can_name_them(tmp_path: Path) -> None:
    """Those that have ended long enough ago, and that there are not again; twice each, and not for ever."""
    create_missing(tmp_path, bucket_count=2)
    changes = DriverTable(tmp_path, BUNDLE_CHANGES_TABLE, "app")
    ends = {"kv/long": NOW_MS - 3 * REST_MS, "kv/now": NOW_MS - REST_MS + 1, "kv/again": NOW_MS - 3 * REST_MS}
    rows = [change(name, at_ms, ended=True) for name, at_ms in ends.items()]
    changes.append([*rows, change("kv/moved", NOW_MS - 3 * REST_MS, ended=False)], 1)
    DriverTable(tmp_path, BUNDLES_TABLE, "app").append([present("kv/again"), present("kv/moved")], 1)
    gone = GoneBundles(tmp_path)
    assert gone.to_forget(NOW_MS) == {"kv/long"}
    assert gone.to_forget(NOW_MS) == frozenset()
    assert gone.to_forget(NOW_MS + 1) == gone.to_forget(NOW_MS + REST_MS) == {"kv/now"}
    assert gone.to_forget(NOW_MS + REST_MS + 1) == {"kv/now"}
    assert gone.to_forget(NOW_MS + REST_MS + 2) == frozenset()
    assert GoneBundles(tmp_path).to_forget(NOW_MS + 200 * REST_MS) == frozenset()


def stored(folder: Path, buckets: Iterable[tuple[int, tuple[str, ...]]], time_ms: int) -> DriverTable:
    """The table with bundles that were reported at a time, in these buckets."""
    create_missing(folder, bucket_count=2)
    table = DriverTable(folder, BUNDLE_LOAD_TABLE, "app")
    rows = []
    for bucket, names in buckets:
        plain = PlainLoad()
        plain.fold([report("n1", time_ms - 100, [bundle_load(name) for name in names])], ResourceWeights())
        rows += [
            dict(zip(BUNDLE_LOAD_TABLE.columns, bundle_row(each, bucket), strict=True))
            for each in plain.bundles.values()
        ]
    table.append(rows, 1)
    return table


def test_rows_are_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    """Only theirs, only if no report is newer, and only their buckets are written again."""
    table = stored(tmp_path, [(3, ("kv/a", "kv/b")), (4, ("kv/c",)), (5, ("kv/d",))], 1_000)
    before = table.files_of_buckets()
    buckets = bucket_files(spark, before)
    assert files_without(buckets, table.folder, {"kv/a", "kv/d", "kv/z"}, 1_000) == []
    files = files_without(buckets, table.folder, {"kv/a", "kv/d", "kv/z"}, 1_001)
    assert sorted((file.partition, json.loads(file.statistics)["numRecords"]) for file in files) == [("3", 1), ("5", 0)]
    table.replace_buckets(files, 2)
    assert sorted(table.rows()["bundle_id"].to_pylist()) == ["kv/b", "kv/c"]
    assert table.files_of_buckets()[4] == before[4]
