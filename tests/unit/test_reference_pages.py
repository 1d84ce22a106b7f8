"""The reference pages that are drawn from code, schemas and settings say what those say."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
METRIC_CLASSES = {"Counter", "Gauge", "Histogram", "Summary", "Info"}


@pytest.mark.parametrize("script", sorted(path.name for path in REFERENCE.glob("generate_*.py")))
def test_page_is_fresh(script: str) -> None:
    """A page that lags behind its source misleads everybody who reads it instead of the source."""
    drawing = runpy.run_path(str(REFERENCE / script))
    assert drawing["PAGE"].read_text(encoding="utf-8") == drawing["page"](), f"run: python docs/reference/{script}"


def test_every_drawn_page_has_its_script() -> None:
    """A script under another name would be left out of the test above in silence."""
    drawn = {page.name for page in REFERENCE.glob("*.md") if "<!-- Drawn by " in page.read_text(encoding="utf-8")}
    scripts = {path.stem.removeprefix("generate_").replace("_", "-") for path in REFERENCE.glob("generate_*.py")}
    assert drawn == {f"{name}.md" for name in scripts} != set()


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
