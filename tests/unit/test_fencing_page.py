"""The page about fencing says what the table and the tests say."""

import re
import runpy
from pathlib import Path

import pytest

from tests.exploration.test_exploration import BUGS
from tests.helpers.fencing_bounds import DEPLOYMENTS, bounds
from tests.mutants.table import MUTANTS as MUTANTS_OF_MODULES
from tests.simulation.mutants.bugs import MUTANTS as MUTANTS_OF_SIMULATION

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "fencing.md"
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))))
MUTANTS = {each.bug for each in MUTANTS_OF_SIMULATION} | {each.bug.words for each in MUTANTS_OF_MODULES}
QUOTED_MUTANTS = sorted(
    name
    for names in re.findall(r"\bmutants? (\*[^*|]+\*(?:(?:, | and )\*[^*|]+\*)*)", PAGE.read_text(encoding="utf-8"))
    for name in re.findall(r"\*([^*]+)\*", names)
)


def test_diagram_is_fresh() -> None:
    """A diagram that lags behind the table argues about another machine."""
    script = "docs/reference/generate_states.py"
    assert PAGE.read_text(encoding="utf-8") == runpy.run_path(str(ROOT / script))["fencing"](), f"run: python {script}"


@pytest.mark.parametrize(("path", "test"), NAMED)
def test_every_test_that_is_named_exists(path: str, test: str) -> None:
    """An argument that rests on a test which was renamed rests on nothing."""
    assert f"def {test}(" in (ROOT / "tests" / path).read_text(encoding="utf-8")


def test_every_failure_names_a_test_or_was_explored() -> None:
    """A failure without evidence that it is prevented is a claim."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    failures = [row for row in rows if not row.startswith(("| failure", "| bound"))]
    assert len(failures) > 20
    assert [row for row in failures if "::" not in row and "explored:" not in row] == []


@pytest.mark.parametrize("mistake", re.findall(r"explored: \*(.+?)\*", PAGE.read_text(encoding="utf-8")))
def test_every_mistake_that_was_explored_is_one_of_those_that_the_search_finds(mistake: str) -> None:
    """Its name leads to the shortest way to it."""
    assert mistake in BUGS


@pytest.mark.parametrize("mutant", QUOTED_MUTANTS)
def test_every_mutant_that_is_named_exists(mutant: str) -> None:
    """Its name leads to the bug that is put in, and to what finds it."""
    assert mutant in MUTANTS


def test_all_names_of_mutants_are_found_on_the_page() -> None:
    """A row that names some in another form would not be checked."""
    assert re.findall(r"\bmutants?\b(?! \*)", PAGE.read_text(encoding="utf-8")) == []
    assert QUOTED_MUTANTS


def test_bounds_are_those_that_the_settings_give() -> None:
    """A default that changes changes what the page promises."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    tables = {row[0]: row[2:-1] for row in cells if len(row) == 3 + len(DEPLOYMENTS)}
    assert tables.pop("bound") == [each.name for each in DEPLOYMENTS]
    computed = [bounds(each) for each in DEPLOYMENTS]
    assert {name: numbers for name, numbers in tables.items() if not name.startswith("-")} == {
        name: [f"{each[name]:,}" for each in computed] for name in computed[0]
    }
