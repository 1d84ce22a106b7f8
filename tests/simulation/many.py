"""Runs many seeds, on every core."""

import gc
import logging
import os
from collections.abc import Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Final

import structlog

from tests.simulation.run import Report, run

_CHUNK: Final = 4


def run_all(seeds: Iterable[int], jobs: int | None = None) -> Generator[Report]:
    """The reports in the order of their seeds; ``jobs`` None takes every core. Closed early, it begins no more runs."""
    with ProcessPoolExecutor(jobs or os.cpu_count(), initializer=_prepare_for_many) as pool:
        yield from pool.map(_run, seeds, chunksize=_CHUNK)


def prepare() -> None:
    """Be quiet: processes that are hit by faults complain a lot. And collect garbage between runs only."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    gc.disable()


def _prepare_for_many() -> None:
    """Exclude imported objects from garbage collection, because scanning them takes longer than the rest."""
    prepare()
    gc.freeze()


def _run(seed: int) -> Report:
    report = run(seed)
    gc.collect()
    return report
