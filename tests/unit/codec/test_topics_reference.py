"""The reference page of the topics is drawn from the file that creates them."""

import runpy
from pathlib import Path

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def test_the_page_is_fresh() -> None:
    """Whoever changes a setting changes the page with it."""
    script = runpy.run_path(str(REFERENCE / "generate_topics.py"))
    written = (REFERENCE / "topics.md").read_text(encoding="utf-8")
    assert written == script["page"](), "run: python docs/reference/generate_topics.py"
