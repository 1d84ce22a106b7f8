"""One run: kills under load, then quiet, then the verdict."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.helpers.pipeline_process import running
from tests.helpers.pipeline_world import PipelineWorld
from tests.helpers.standalone_spark import StandaloneSpark
from tests.pipeline_chaos.kills import KillKind, PipelineKiller
from tests.pipeline_chaos.traffic import Traffic
from tests.pipeline_chaos.verdict import Verdict

_STUCK_S: Final = 180.0
"""A pipeline that adds no record for so long does not work off what is left."""
_SETTLES_S: Final = 300.0
"""How long what is made of the records may take behind them."""
_LOOK_S: Final = 5.0


class Report(NamedTuple):
    """What came of a run.

    Attributes:
        kills: how often each kind of kill was carried out.
        records: those of each topic.
        problems: what is wrong with the tables, as sentences; empty if nothing is.
        caught_up_s: how long the last start took until nothing was missing.
    """

    kills: Mapping[KillKind, int]
    records: Mapping[str, int]
    problems: list[str]
    caught_up_s: float


def run(
    world: PipelineWorld,
    folder: Path,
    minutes: float,
    seed: int,
    batch_size: int,
    *,
    tell: Callable[[str], None] = lambda _: None,
    cluster: StandaloneSpark | None = None,
) -> Report:
    """Kill the pipeline for some minutes, let it catch up, and judge its tables.

    Args:
        world: a cluster with its topics.
        folder: where the pipeline's output goes.
        minutes: for how long new kills begin.
        seed: of all choices.
        batch_size: the greatest number of records of a batch.
        tell: takes a line for each kill.
        cluster: the Spark cluster whose executors the pipeline uses; None for its own process.
    """
    source = random.Random(seed)
    log = folder / "pipeline.log"
    killer = PipelineKiller(world, source, log, batch_size, cluster)
    traffic = Traffic(world, seed, minutes)
    traffic.start()
    try:
        began_s = time.monotonic()
        while time.monotonic() - began_s < minutes * 60:
            kind = killer.live_and_die()
            tell(f"{time.monotonic() - began_s:6.0f} s  {kind.name.lower().replace('_', ' ')}: {kind.value}")
    finally:
        sent = traffic.stop()
    verdict = Verdict(world, sent)
    began_s = time.monotonic()
    with running(world, log, batch_size, cluster.master if cluster else ""):
        _work_off(verdict)
        settled_by_s = time.monotonic() + _SETTLES_S
        while verdict.problems() and time.monotonic() < settled_by_s:
            time.sleep(_LOOK_S)
        caught_up_s = time.monotonic() - began_s
    return Report(Counter(killer.counts), verdict.counts, verdict.problems(), caught_up_s)


def _work_off(verdict: Verdict) -> None:
    """Wait until every record is in its table, or none is added any more."""
    left, changed_at_s = verdict.missing_count(), time.monotonic()
    while left > 0 and time.monotonic() - changed_at_s < _STUCK_S:
        time.sleep(_LOOK_S)
        now_left = verdict.missing_count()
        if now_left != left:
            left, changed_at_s = now_left, time.monotonic()
