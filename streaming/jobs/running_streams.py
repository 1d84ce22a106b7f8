"""The streams while the pipeline runs: started, attended to, and stopped, with the tables maintained beside them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat, takewhile
from typing import Final

from streaming.config import PipelineConfig
from streaming.jobs.restarts import RestartedStream
from streaming.tables.maintenance import maintain

_LOOK_INTERVAL_S: Final = 0.5
_FIRST_MAINTENANCE_S: Final = 60.0
"""How long after a start the tables are maintained first: a process that lives less than the interval does it, too."""
_LAST_TABLE_S: Final = 2.0
"""How long the end waits for the table that is maintained: most take less. The process may end within a call of
delta-rs; but if a call returns just while Python is ending, the process crashes, without harm to the table."""


def run_streams(
    config: PipelineConfig, streams: Sequence[RestartedStream], stop: threading.Event, on_started: Callable[[], None]
) -> None:
    """Run the streams until ``stop`` is set, and stop them; blocks.

    A start asks Kafka, and waits for it, so ``stop`` is looked at before each.

    Args:
        config: the pipeline's settings.
        streams: they do not run yet.
        stop: ends them.
        on_started: called once when all run.

    Raises:
        ControlPlaneError: a stream would meet the same error again, or has failed too often in a row.
        Exception: the first start of a stream failed, or the maintenance did, other than for one table.
    """

    def until_stopped() -> Iterator[RestartedStream]:
        return takewhile(lambda _: not stop.is_set(), streams)

    with _maintained(config, stop) as failures:
        try:
            for stream in until_stopped():
                stream.start()
            if not stop.is_set():
                on_started()
            while not failures and not stop.wait(_LOOK_INTERVAL_S):
                for stream in until_stopped():
                    stream.attend(time.monotonic())
        finally:
            for stream in streams:
                stream.stop()


@contextmanager
def _maintained(config: PipelineConfig, stop: threading.Event) -> Iterator[Sequence[BaseException]]:
    """Maintain the tables within the block, from time to time, in a thread of its own: one table may take minutes.

    It may commit beside the streams, which commit in threads of their own, too. It opens each table for itself, as each
    writer does (:mod:`streaming.tables.table_writer`), and its commits name no writer, so none takes them for those
    of another process. Joined and removed files keep Delta from no commit of a stream. Forgotten days do if they go in
    the milliseconds between a writer's look and its append: the stream is started again, and repeats its batch. If a
    commit of the maintenance is refused, the next turn does what it left. So a turn that outlasts the block, and with
    it the claim on the tables, does no harm beside another pipeline either.

    Yields:
        The error that ended the maintenance, once one has; it has to end the block, and is raised behind it.
    """
    ended, errors = threading.Event(), list[BaseException]()

    def take_turns() -> None:
        interval_s = config.maintenance_interval_ms / 1_000
        waits_s = chain([min(interval_s, _FIRST_MAINTENANCE_S)], repeat(interval_s))
        try:
            while not ended.wait(next(waits_s)):
                maintain(
                    config.tables_dir,
                    keep_days=config.keep_days,
                    is_ended=lambda: stop.is_set() or ended.is_set(),
                )
        except BaseException as error:  # noqa: BLE001 - raised below; a panic of delta-rs is no Exception
            errors.append(error)

    thread = threading.Thread(target=take_turns, name="maintenance", daemon=True)
    thread.start()
    try:
        yield errors
    finally:
        ended.set()
        thread.join(_LAST_TABLE_S)
    if errors:
        raise errors[0]
