"""The reference page of the schemas is the schemas' own documentation."""

import runpy

from controlplane.resources import resource_path

REFERENCE = resource_path("schemas").parent / "docs" / "reference"


def test_the_reference_page_is_fresh() -> None:
    """A page that says something else than the schemas misleads everybody who writes a producer from it."""
    script = runpy.run_path(str(REFERENCE / "generate_schemas.py"))
    written = (REFERENCE / "schemas.md").read_text("utf-8")
    assert written == script["page"](), "run: python docs/reference/generate_schemas.py"
    assert "| `sent_at_ms` | long |" in written
