"""What every test of the project can use, and when a tier is skipped."""

import contextlib
import gc
import logging
import os
import warnings
from collections import Counter
from collections.abc import Iterator

import hypothesis
import pytest
import structlog

from tests.helpers.sizes import sized

pytest_plugins = ["tests.fixtures", "tests.broker_clusters", "tests.side_by_side"]

CONTAINERS_VARIABLE = "CONTROLPLANE_TEST_CONTAINERS"

# A busy machine makes examples slow, not wrong; the blob lets anybody repeat a failure.
hypothesis.settings.register_profile("project", deadline=None, print_blob=True, max_examples=sized(40, 200))
# For `make test-fast`: fewer examples, unless a test asks for a number that is no multiple of the profile's.
hypothesis.settings.register_profile("fast", hypothesis.settings.get_profile("project"), max_examples=25)
hypothesis.settings.load_profile("project")


@pytest.fixture(autouse=True)
def _former_logging() -> Iterator[None]:
    """Logging is the process's: what one test sets up or silences is gone before the next looks for lines."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests; skip the tier of containers, with the reason, where it cannot run.

    A test of minutes that one of several processes begins last leaves the others without work. Among tests with the
    same limit, those of the file with the most of them come first: processes that take whole files begin with it.
    """
    tests_of = Counter(item.path for item in items)
    items.sort(key=lambda item: (-limit_s(item), -tests_of[item.path]))
    container_tests = [item for item in items if item.get_closest_marker("containers")]
    reason = why_no_containers() if container_tests else None
    if reason:
        for item in container_tests:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Exclude what was imported and collected from garbage collection: scanning it takes longer than short tests do."""
    gc.collect()
    gc.freeze()


def limit_s(item: pytest.Item) -> float:
    """The time that a test may take on a busy machine; 0 unless it has asked for more than others have."""
    limit = item.get_closest_marker("timeout")
    return float(limit.args[0]) if limit is not None else 0.0


def why_no_containers() -> str | None:
    """Why the tests that need containers cannot run here, or None when they can."""
    if os.environ.get(CONTAINERS_VARIABLE) != "1":
        return f"containers are opt-in: set {CONTAINERS_VARIABLE}=1 where a Docker engine runs"
    import docker  # noqa: PLC0415 - only this tier needs it
    from docker.errors import DockerException  # noqa: PLC0415 - as above

    reason = None
    with warnings.catch_warnings():
        # Docker's client leaves its socket open when no engine answers; collected here, it disturbs no test.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            with contextlib.closing(docker.from_env()) as engine:
                engine.ping()
        except DockerException as error:
            reason = f"no Docker engine answers: {error}"
        gc.collect()
    return reason
