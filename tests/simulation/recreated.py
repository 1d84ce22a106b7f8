"""A separate kind of run: the decision log is deleted under a running leader and created again.

No controller may lead on such a log. Each one that notices it stops with an error that names the contradiction. Until
then decisions may be committed into the new topic. They must not make a reader go back, and no new log may begin there.
"""

import random
from typing import Final

from controlplane.config import DECISIONS
from controlplane.errors import LogContinuityError
from tests.simulation.memo import decoding_once
from tests.simulation.plan import Item
from tests.simulation.run import Report, Run
from tests.simulation.setting import CONTROLLERS
from tests.simulation.work_kinds import WorkKind

STOPPED: Final = "a recreated log stops every controller, with a clear error"
_NEXT_TRY_MS: Final = 10


class RecreatedRun(Run):
    """A run in which the decision log is deleted and created again, and nothing else goes wrong."""

    def begin(self) -> None:
        """Also: the log is recreated some time, and controllers are started again, which operators would try."""
        super().begin()
        choose = random.Random(f"recreation in {self.seed}")
        self._recreated_at_ms = choose.randint(4_000, 9_000)
        self.world.scheduler.at(self._recreated_at_ms, self._recreate)
        for _ in range(2):
            self.world.scheduler.at(self._recreated_at_ms + choose.randint(50, 6_000), self._start_all)

    def items(self) -> tuple[Item, ...]:
        """Only work."""
        return tuple(item for item in super().items() if isinstance(item.kind, WorkKind))

    def judge_failures(self) -> None:
        """Controllers stop because of the log, and for no other reason. No other process stops."""
        recreated = self.world.scheduler.now_ms >= self._recreated_at_ms
        for failure in self.world.failures:
            expected = recreated and failure.process.startswith("c") and isinstance(failure.error, LogContinuityError)
            self.verdicts.judge(STOPPED, expected, failure)
        self.world.failures.clear()

    def judge_end(self) -> None:
        """No controller leads."""
        self.verdicts.judge(STOPPED, not self.world.running, f"{sorted(self.world.running)} go on")
        self.verdicts.require()

    def _recreate(self) -> None:
        (partition,) = self.world.broker.partitions(self.world.cluster.topic(DECISIONS))
        if partition.last_stable_offset < partition.end_offset:
            # A decision that is lost half way would be in the table alone, and could not be identified.
            self._recreated_at_ms = self.world.scheduler.now_ms + _NEXT_TRY_MS
            self.world.scheduler.at(self._recreated_at_ms, self._recreate)
            return
        self.world.recreate_log()
        self.log.begin_again()

    def _start_all(self) -> None:
        for name in CONTROLLERS:
            self.world.start_controller(name)


def run_recreated(seed: int | str) -> Report:
    """Run one seed to its end, or to the first violation."""
    with decoding_once():
        return RecreatedRun(str(seed)).to_its_end()
