"""What a worker does at the beginning of a task: by itself, and in the tasks that decode."""

import gc
import importlib
import sys
import zipfile
import zipimport
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from controlplane.core.bundles.load.resource_usage import ResourceWeights
from streaming.load.decoding import decoded_reports
from streaming.worker_setup import set_up_worker
from tests.helpers.raw_batches import RAW

_WORKERS_AT_MOST = 8


@pytest.fixture(autouse=True)
def former_threshold() -> Iterator[None]:
    """The garbage collector's is the process's."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_archives_are_not_read_again_before_each_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor forgotten: what is in one can be imported afterwards."""
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("first_in_archive.py", "x = 1")
        made.writestr("second_in_archive.py", "x = 2")
    monkeypatch.syspath_prepend(str(archive))
    importlib.import_module("first_in_archive")
    assert isinstance(sys.path_importer_cache[str(archive)], zipimport.zipimporter)
    set_up_worker()
    assert not any(isinstance(each, zipimport.zipimporter) for each in sys.path_importer_cache.values())
    importlib.invalidate_caches()
    assert importlib.import_module("second_in_archive").x == 2


def state_of_worker(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a worker."""
    assert list(batches) is not None
    archives = sum(isinstance(each, zipimport.zipimporter) for each in sys.path_importer_cache.values())
    yield pa.record_batch({"threshold": [gc.get_threshold()[0]], "archives": [archives]})


def test_executors_that_decode_are_set_up(spark: SparkSession, tmp_path: Path) -> None:
    """The next task of their workers finds it so; a session has several workers, and others may be as they were.

    Spark gives a task to the worker that has waited for longest: so each of them is asked after one has decoded. The
    first question imports this module there, by archives of the path; the next round finds what decoding left.
    """
    records = spark.createDataFrame([(0, 1, 2, b"n", b"junk", True)], RAW)
    decoded = decoded_reports(records.coalesce(1), {}, ResourceWeights(), tmp_path, (0,))
    state = spark.range(1).coalesce(1).mapInArrow(state_of_worker, "threshold long, archives long")
    found: list[tuple[object, ...]] = []
    for _ in range(3):
        decoded.collect()
        found = [tuple(row) for _ in range(_WORKERS_AT_MOST) for row in state.collect()]
    assert (100_000, 0) in found
