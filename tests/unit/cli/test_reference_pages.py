"""The reference pages of the command and of the metrics say what the code says."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"
METRIC_CLASSES = {"Counter", "Gauge", "Histogram", "Summary", "Info"}


@pytest.mark.parametrize("name", ["cli", "metrics"])
def test_page_is_fresh(name: str) -> None:
    """A page that lags behind the code misleads everybody who reads it instead of the code."""
    drawn = runpy.run_path(str(REFERENCE / f"generate_{name}.py"))["page"]()
    written = (REFERENCE / f"{name}.md").read_text(encoding="utf-8")
    assert written == drawn, f"run: python docs/reference/generate_{name}.py"


def test_every_metric_of_the_sources_is_listed() -> None:
    """The page is drawn from lists of metrics; a part that is forgotten there would be missing in silence."""
    page = (REFERENCE / "metrics.md").read_text(encoding="utf-8")
    names = {
        name
        for folder in ("controlplane", "streaming")
        for path in (ROOT / folder).rglob("*.py")
        for name in _metric_names(path.read_text(encoding="utf-8"))
    }
    assert names >= {"controlplane_epoch", "controlplane_client_epoch"}
    assert {name for name in names if f"`{name}`" not in page} == set()


def _metric_names(source: str) -> set[str]:
    """The first arguments of calls that make metrics."""
    return {
        str(argument.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in METRIC_CLASSES
        for argument in node.args[:1]
        if isinstance(argument, ast.Constant)
    }
