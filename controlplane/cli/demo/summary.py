"""What the demo measured, printed at its end and left as ``report.json``."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from controlplane.cli.common.output import print_rows
from controlplane.cli.demo.checks import Check
from controlplane.cli.demo.traffic import Counts
from controlplane.core.values.canonical import CanonicalValue, to_canonical
from controlplane.inspection.records import Record, Records

STEP_COLUMNS = (
    "step",
    "epochs",
    "moved",
    "least",
    "carried_out",
    "leader_changes",
    "detected_ms",
    "readable_ms",
    "answered",
    "refused",
    "failed",
    "window_s",
)
LEGEND = """\
epochs: routing tables published in the step. moved, least: replicas that its plans move, and the proven least.
carried out: of these in the step. The rest follows, or a later plan has made it needless. leader changes: carried out.
detected: from the cause to the decision in the log (hot: to the last report that counted).
readable: from the cause to the swap in a routing client (hot: to the candidate in its topic).
answered, refused, failed: requests of the traffic in the step's window; a refused one is tried again elsewhere.
"""


@dataclass(slots=True)
class StepReport:
    """One step as it was measured.

    Attributes:
        title: the step's title.
        epochs: first and last epoch published in it; None if none was.
        moved: replicas that the plans of its decisions move.
        least_moved: the proven least of these plans.
        moves_carried_out: replicas that were moved in the step. A later plan replaces what an earlier one had left.
        leader_changes: slots that got another leader in the step.
        detected_ms: from the cause to the append of the decision about it.
        readable_ms: from the cause to the swap in a routing client.
        counts: requests in the step's window.
        window_s: how long the window was.
        checks: the results of the checks.
    """

    title: str
    epochs: tuple[int, int] | None = None
    moved: int = 0
    least_moved: int = 0
    moves_carried_out: int = 0
    leader_changes: int = 0
    detected_ms: int | None = None
    readable_ms: int | None = None
    counts: Counts = field(default_factory=Counts)
    window_s: float = 0.0
    checks: list[Check] = field(default_factory=list)

    def row(self) -> Record:
        """The line of the summary."""
        return {
            "step": self.title,
            "epochs": _range(self.epochs),
            "moved": self.moved,
            "least": self.least_moved,
            "carried_out": self.moves_carried_out,
            "leader_changes": self.leader_changes,
            "detected_ms": self.detected_ms,
            "readable_ms": self.readable_ms,
            "answered": self.counts.answered,
            "refused": self.counts.refused,
            "failed": self.counts.failed,
            "window_s": round(self.window_s, 1),
        }


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A query that was run on the Delta tables, and its rows."""

    statement: str
    rows: Records


def print_summary(steps: Sequence[StepReport], queries: Sequence[QueryResult], elapsed_s: float) -> None:
    """Print what was measured and queried."""
    click.echo("")
    print_rows([step.row() for step in steps], STEP_COLUMNS, f"Measured in {elapsed_s:.0f} s:")
    click.echo(LEGEND)
    for query in queries:
        click.echo(f"SQL: {query.statement}")
        if query.rows:
            print_rows(query.rows, tuple(query.rows[0]))
        else:
            click.echo("(no rows)")
        click.echo("")


def write_report(path: Path, steps: Sequence[StepReport], queries: Sequence[QueryResult], failure: str | None) -> None:
    """Write the whole report as JSON. ``failure`` is None if every step passed its checks."""
    document: CanonicalValue = {
        "passed": failure is None,
        "failure": failure,
        "steps": [{**step.row(), "checks": [to_canonical(check) for check in step.checks]} for step in steps],
        "queries": [{"statement": query.statement, "rows": [dict(row) for row in query.rows]} for query in queries],
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _range(epochs: tuple[int, int] | None) -> str:
    if epochs is None:
        return ""
    first, last = epochs
    return str(first) if first == last else f"{first}-{last}"
