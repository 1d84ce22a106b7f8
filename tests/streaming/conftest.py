"""One Spark session for the tests of a process: starting it takes 5 to 20 s."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from controlplane.embedded.jars import spark_jars
from controlplane.embedded.java import find_java
from controlplane.embedded.kafka import EmbeddedKafka
from streaming.config import SparkConfig
from streaming.session import build_session
from streaming.tables.created_tables import create_missing
from tests.helpers.pipeline_world import PipelineWorld

DEADLINE_S = 400
"""Long enough for a machine that is busy with other things."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that needs the session, and give it time."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(DEADLINE_S))
            # pyspark leaves the sockets by which it fetches results to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(autouse=True)
def collect_sockets(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect pyspark's sockets within the test that left them, or a test that knows nothing of Spark would fail."""
    yield
    if "spark" in request.fixturenames:
        gc.collect()


@pytest.fixture(scope="session")
def jars() -> tuple[Path, ...]:
    """The pipeline's jars, fetched if need be."""
    return spark_jars()


@pytest.fixture(scope="session")
def spark(jars: tuple[Path, ...]) -> Iterator[SparkSession]:
    """The session that all tests of the tier share."""
    session = build_session("tests", SparkConfig(jars=jars, java_home=find_java().home))
    yield session
    session.stop()


@pytest.fixture
def make_world(
    kafka_broker: EmbeddedKafka, cluster_name: str, tmp_path: Path, jars: tuple[Path, ...]
) -> Callable[[], PipelineWorld]:
    """Makes a cluster with its topics and without tables."""
    return lambda: PipelineWorld(cluster_name, kafka_broker.bootstrap_servers, tmp_path, jars)


@pytest.fixture
def tables_dir(tmp_path: Path) -> Path:
    """Empty tables of this test's own."""
    create_missing(tmp_path / "delta", bucket_count=2)
    return tmp_path / "delta"


@pytest.fixture
def world(make_world: Callable[[], PipelineWorld], tables_dir: Path) -> PipelineWorld:
    """A cluster with its topics and empty tables."""
    made = make_world()
    assert made.tables_dir == tables_dir
    return made
