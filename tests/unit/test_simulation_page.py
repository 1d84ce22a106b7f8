"""The page about the simulation says what the simulation is."""

from pathlib import Path

from controlplane.core.election.steps import ControllerPhase
from tests.simulation.fault_kinds import FaultKind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "simulation.md"


def test_the_number_of_cells_is_that_of_kinds_and_steps() -> None:
    """A kind of fault that is added is added to the page."""
    assert f" {len(FaultKind) * len(ControllerPhase)} cells" in PAGE.read_text(encoding="utf-8")
