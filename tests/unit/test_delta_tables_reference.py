"""The reference page of the Delta tables is drawn from their contracts."""

import runpy
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_page_is_fresh() -> None:
    """Whoever changes a column changes the page with it."""
    script = runpy.run_path(str(REFERENCE / "generate_delta_tables.py"))
    written = (REFERENCE / "delta-tables.md").read_text(encoding="utf-8")
    assert written == script["page"](), "run: python docs/reference/generate_delta_tables.py"
