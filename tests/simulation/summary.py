"""The summary of many runs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from controlplane.core.election.steps import ControllerPhase
from controlplane.core.log.events import Event
from tests.simulation.fault_kinds import FaultKind
from tests.simulation.run import Report
from tests.simulation.setting import SettingKind
from tests.simulation.work_kinds import WorkKind


@dataclass
class Summary:
    """Adds reports up.

    Attributes:
        runs: how many.
        broken: those that have shown what must not be.
        checked: how often each invariant was looked at.
        happened: the kinds of events that were committed.
        settings: how many clusters each kind of setting had.
        fewest_events, fewest_faults, fewest_kinds, shortest_ms: the least of any whole run; kinds are those of faults.
    """

    runs: int = 0
    broken: list[Report] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    happened: set[type[Event]] = field(default_factory=set)
    settings: Counter[SettingKind] = field(default_factory=Counter)
    fewest_events: int = 1 << 60
    fewest_faults: int = 1 << 60
    fewest_kinds: int = 1 << 60
    shortest_ms: int = 1 << 60
    _virtual_ms: int = 0
    _events: int = 0
    _decisions: int = 0
    _terms: int = 0
    _slowest_healing_ms: int = 0
    _faults: Counter[FaultKind] = field(default_factory=Counter)
    _work: Counter[WorkKind] = field(default_factory=Counter)
    _coverage: Counter[tuple[FaultKind, ControllerPhase]] = field(default_factory=Counter)

    def add(self, report: Report) -> None:
        """Add a run. Minimum requirements are checked for whole runs only."""
        self.runs += 1
        self._virtual_ms += report.virtual_ms
        self._events += report.events
        self._decisions += report.decisions
        self._terms += report.terms
        self._slowest_healing_ms = max(self._slowest_healing_ms, report.healed_ms)
        self._faults += report.faults
        self._work += report.work
        self._coverage += report.coverage
        self.checked += report.checked
        self.happened |= report.happened
        self.settings.update(report.settings)
        if report.broken:
            self.broken.append(report)
        else:
            self.fewest_events = min(self.fewest_events, report.events)
            self.fewest_faults = min(self.fewest_faults, report.faults.total())
            self.fewest_kinds = min(self.fewest_kinds, len(report.faults))
            self.shortest_ms = min(self.shortest_ms, report.virtual_ms)

    def lines(self) -> Iterator[str]:
        """As it is printed."""
        yield f"{self.runs:,} runs, {self._virtual_ms / 1_000:,.0f} s of virtual time, {self._events:,} events"
        yield f"{self._decisions:,} decisions, {self._terms:,} terms; well after {self._slowest_healing_ms} ms at most"
        yield (
            f"the smallest run: {self.fewest_events:,} events, {self.fewest_faults} faults of {self.fewest_kinds} kinds"
        )
        yield f"faults: {self._faults.total():,}, by the step in which they met a controller"
        yield from self._coverage_lines()
        yield from (f"  {self.settings[kind]:>9,}  runs with {kind.value}" for kind in SettingKind)
        yield f"work: {self._work.total():,}"
        yield from (f"  {self._work[kind]:>9,}  {kind.value}" for kind in WorkKind)
        yield f"invariants looked at: {self.checked.total():,}"
        yield from (f"  {count:>9,}  {name}" for name, count in sorted(self.checked.items()))
        yield f"broken: {len(self.broken)}"

    @property
    def empty_cells(self) -> list[str]:
        """The steps that a kind of fault has never met, one text each."""
        return [
            f"{kind.value} x {step.value}"
            for kind in FaultKind
            for step in ControllerPhase
            if not self._coverage[kind, step]
        ]

    def _coverage_lines(self) -> Iterator[str]:
        """A row for each kind of fault, a column for each step."""
        width = max(len(kind.value) for kind in FaultKind)
        for row in range(max(len(step.value.split()) for step in ControllerPhase)):
            words = [(step.value.split() + [""] * 2)[row] for step in ControllerPhase]
            yield f"  {'':>{width}} {'' if row else 'in all':>9}" + "".join(f"{word:>11}" for word in words)
        for kind in FaultKind:
            cells = "".join(f"{self._coverage[kind, step]:>11,}" for step in ControllerPhase)
            yield f"  {kind.value:>{width}} {self._faults[kind]:>9,}{cells}"
        yield f"  empty cells: {len(self.empty_cells)}"
