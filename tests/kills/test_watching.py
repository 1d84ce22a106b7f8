"""A watch tells that one of its threads has failed, and bounds from above for how long nodes refuse."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import LogUnavailableError
from tests.helpers.polling import poll_until
from tests.kills.cluster import KvCluster
from tests.kills.disk import Disk
from tests.kills.repeating import Repeating
from tests.kills.watching import Arrival, Samples, Watch

DECISION = Decision(Seq(1), Term(1), Epoch(1), "log", "c1", 3, 0, (), (), {}, "", None, "", "")


class BrokenStepError(Exception):
    """No error that a watch expects."""


class WatchWithoutCluster(Watch):
    """Has one step, which brings a decision at first and fails once it is told to."""

    def __init__(self, folder: Path) -> None:
        """Nothing answers at the address of Kafka."""
        self.fails = threading.Event()
        self.has_failed = threading.Event()
        real = SimpleNamespace(cluster=ClusterConfig("test"), kafka=KafkaConfig("127.0.0.1:1"), folder=folder)
        cluster = SimpleNamespace(real=real, nodes={}, wait_until=lambda condition, _: poll_until(condition))
        super().__init__(cast("KvCluster", cluster))

    def _steps(self) -> list[Callable[[], None]]:
        return [self._step]

    def _step(self) -> None:
        if self.fails.wait(0.01):
            self.has_failed.set()
            raise BrokenStepError
        self.arrivals.append(Arrival(0.0, DECISION))

    def fail(self) -> None:
        """Let the step fail."""
        self.fails.set()
        assert self.has_failed.wait(5)


def test_a_failure_is_raised_at_the_end_of_the_block(tmp_path: Path) -> None:
    """Otherwise no refusal would be found, because nothing looked for one."""
    with pytest.raises(RuntimeError, match="BrokenStepError") as raised, WatchWithoutCluster(tmp_path) as watch:
        watch.fail()
    assert isinstance(raised.value.__cause__, BrokenStepError)


def test_a_failure_is_raised_where_something_is_waited_for(tmp_path: Path) -> None:
    """It will not come."""
    watch = WatchWithoutCluster(tmp_path)
    with pytest.raises(RuntimeError, match="BrokenStepError"), watch:  # noqa: PT012 - the block is what is watched
        watch.fail()
        watch.wait_for(lambda _: False, "a decision that does not come")


def test_a_blocks_own_error_is_raised_before_a_failure(tmp_path: Path) -> None:
    """It came first, or has the same cause."""
    watch = WatchWithoutCluster(tmp_path)
    with pytest.raises(KeyError), watch:  # noqa: PT012 - the block is what is watched
        watch.fail()
        raise KeyError


def test_the_slowest_write_to_the_disk_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick one behind it does not hide it."""
    waits_s = iter([0.0, 0.05, 0.0])
    monkeypatch.setattr("tests.kills.disk.os.fsync", lambda _: time.sleep(next(waits_s)))
    with Disk(tmp_path) as disk:
        for _ in range(3):
            disk.keep()
    assert 0.05 <= disk.longest_s < 1


def test_a_step_is_repeated_although_the_log_was_unavailable() -> None:
    """That is what a watch is to go through. The other threads go on beside one that failed."""
    repeated: list[int] = []

    def unavailable() -> None:
        repeated.append(1)
        threads.ending.wait(0.001)
        raise LogUnavailableError("no answer")

    def broken() -> None:
        raise BrokenStepError

    threads = Repeating([broken, unavailable])
    threads.raise_failure()
    threads.start()
    poll_until(lambda: len(repeated) > 3)
    threads.end()
    with pytest.raises(RuntimeError, match="BrokenStepError"):
        threads.raise_failure()


def test_a_refusal_counts_from_the_last_answer_that_shows_no_refusal_to_the_next() -> None:
    """Within the time of an answer the node may have stopped at once, and served only at the end."""
    samples = Samples()
    samples.add(10.0, 10.1, serves=True)
    samples.add(10.2, 10.3, serves=True)
    assert samples.longest_s == pytest.approx(0.3)
    samples.add(10.4, 10.9, serves=False)
    assert samples.longest_s == pytest.approx(0.7)
    samples.add(11.0, 11.5, serves=True)
    samples.add(11.6, 11.7, serves=True)
    assert samples.longest_s == pytest.approx(1.3)


def test_a_node_that_never_serves_refuses_since_it_was_first_asked() -> None:
    """The watch knows nothing of the time before."""
    samples = Samples()
    samples.add(10.0, 10.5, serves=False)
    samples.add(10.6, 11.1, serves=False)
    assert samples.longest_s == pytest.approx(1.1)
