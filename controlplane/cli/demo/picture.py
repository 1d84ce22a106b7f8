"""The state of the demo at one moment, for the live display and for plain lines."""

from dataclasses import dataclass

from controlplane.cli.demo.traffic import Counts
from controlplane.cli.demo.watching import Observer
from controlplane.core.log.state import State
from controlplane.core.operations.slot_numbers import counted
from controlplane.inspection import members
from controlplane.inspection.records import Records

NODE_COLUMNS = (
    "node",
    "status",
    "slots_led",
    "slots_followed",
    "bundles",
    "epoch_in_use",
    "epoch_lag",
    "since_heartbeat_ms",
)


@dataclass(frozen=True, slots=True)
class Picture:
    """The state of the demo at one moment.

    Attributes:
        elapsed_s: since the beginning.
        step: the present step's title.
        waiting_for: what is waited for.
        epoch: of the newest table; 0 before the first.
        term: of the newest table.
        leader: the controller that wrote the newest decision; empty before the first.
        nodes: a row for each node.
        counts: what the traffic's client counted so far.
    """

    elapsed_s: float
    step: str
    waiting_for: str
    epoch: int
    term: int
    leader: str
    nodes: Records
    counts: Counts

    @property
    def living(self) -> int:
        """How many nodes are active."""
        return sum(1 for row in self.nodes if row["status"] == "active")

    @property
    def subject(self) -> tuple[str | int, ...]:
        """The content of a line without its progress. A line with the same subject contains nothing new."""
        return (self.step, self.waiting_for, self.epoch, self.term, self.leader, self.living)

    def progress_line(self) -> str:
        """A line with the progress only."""
        return f"[{self.elapsed_s:5.0f} s] ... still: {self.waiting_for} (answered {self.counts.answered:,})"

    def line(self) -> str:
        """The picture in one line."""
        counts = self.counts
        return (
            f"[{self.elapsed_s:5.0f} s] {self.step} | {self.waiting_for} | epoch {self.epoch}, "
            f"term {self.term}, leader {self.leader or '-'}, {counted(self.living, 'node')} | "
            f"answered {counts.answered:,}, refused {counts.refused:,}, failed {counts.failed:,}"
        )


def take_picture(observer: Observer | None, elapsed_s: float, step: str, waiting_for: str, counts: Counts) -> Picture:
    """The present moment as the observer sees it."""
    table = observer.table if observer else None
    if observer is None or table is None:
        return Picture(elapsed_s, step, waiting_for, 0, 0, "", [], counts)
    decisions = observer.decisions
    return Picture(
        elapsed_s,
        step,
        waiting_for,
        table.epoch,
        table.term,
        decisions[-1].decision.controller_id if decisions else "",
        # The demo has no operators' orders to show, so the state is not read.
        members.member_rows(table, observer.heartbeats, State()),
        counts,
    )
