"""The page for operators of HiveMQ: what it shows is what the ring answers."""

import sys
from pathlib import Path

from tests.helpers.readme import ROOT, blocks, run

PAGE = ROOT / "docs" / "how-to" / "come-from-hivemq.md"


def test_the_example_prints_what_the_page_shows(tmp_path: Path) -> None:
    """Somebody who moves a cluster compares these owners."""
    program = tmp_path / "leave.py"
    program.write_text(blocks(PAGE)["ring"], encoding="utf-8")
    printed = run([sys.executable, str(program)], tmp_path, {"PYTHONPATH": str(ROOT)})
    assert printed.endswith(blocks(PAGE)["ringprinted"])
