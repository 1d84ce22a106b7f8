"""The page about fencing says what the table and the tests say."""

import inspect
import re
import runpy
from pathlib import Path

import pytest

from controlplane.core.cluster.image import ClusterImage
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.kafka_rules.broker_sessions import USUAL_SESSION_MS
from controlplane.kafka_rules.promises import bearing_silence_limit_ms
from tests.exploration.test_exploration import BUGS
from tests.helpers.fencing_bounds import COLUMNS, ROWS, Bounds
from tests.kills import broker_deaths
from tests.mutants.table import MUTANTS as MUTANTS_OF_MODULES
from tests.simulation.invariants.bounds import FAILOVER_LEASES, detected_within_ms
from tests.simulation.mutants.bugs import MUTANTS as MUTANTS_OF_SIMULATION

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
KILLS = "python -m tests.kills --brokers 3 --controllers-apart --repetitions 20"
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
    bounds = tuple(f"| {row} |" for row in ROWS)
    failures = [row for row in rows if not row.startswith(("| failure", "| bound", *bounds))]
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


def table() -> dict[str, list[str]]:
    """The cells behind the name of each bound."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text(encoding="utf-8").splitlines()]
    rows = {row[0]: row[1:] for row in cells if len(row) == 3 + len(COLUMNS) and not row[0].startswith("-")}
    assert rows.pop("bound")[1:-1] == [each.name for each in COLUMNS]
    return rows


def attribute_of(bounds: Bounds, row: str) -> int | None:
    """What a row shows of some settings."""
    value: int | None = getattr(bounds, ROWS[row])
    return value


def test_bounds_are_those_that_the_settings_give() -> None:
    """A default that changes changes what the page promises."""
    computed = {row: [attribute_of(each, row) for each in COLUMNS] for row in ROWS}
    assert {row: cells[1:-1] for row, cells in table().items()} == {
        row: ["-" if each is None else f"{each:,}" for each in bounds] for row, bounds in computed.items()
    }


@pytest.mark.parametrize("row", ROWS)
def test_what_shows_a_bound_computes_it_too(row: str) -> None:
    """A test that allows another time would go on passing when the page promises less."""
    kind, _, shown_by = table()[row][-1].partition(": ")
    if kind == "measured":
        assert shown_by == f"`{KILLS}`"
        assert f"bounds.{ROWS[row]}" in inspect.getsource(broker_deaths.quoted)
        return
    assert kind == "asserted"
    tests = re.findall(r"`([\w/]+\.py)::(\w+)`", shown_by)
    assert tests
    for path, name in tests:
        found = re.search(
            rf"^def {name}\(.*?(?=^\S|\Z)", (TESTS / path).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        assert found is not None
        assert f".{ROWS[row]}" in found[0], f"{path}::{name}"


def test_the_price_of_a_longer_limit_is_named() -> None:
    """The limit that bears a session of 9 s, and what follows from it, to the next tenth of a second."""
    limit_ms = bearing_silence_limit_ms(USUAL_SESSION_MS)
    bounds = Bounds(3, USUAL_SESSION_MS, ClusterImage(ClusterPolicy(silence_limit_ms=limit_ms)))
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"nodes refuse for up to {seconds(Bounds(3, USUAL_SESSION_MS).refusal_ms)}." in text
    assert f"A silence limit of {seconds(limit_ms)} bears that session" in text
    assert f"a death is noticed after {seconds(bounds.detection_ms)}" in text
    assert f"an overlap after a move may last {seconds(bounds.overlap_after_move_ms)}." in text


def seconds(time_ms: int | None) -> str:
    """For a sentence: a bound is not rounded down."""
    return f"{-(-(time_ms or 0) // 100) / 10} s"


def test_seeds_allow_what_the_page_says() -> None:
    """Their faults overlap."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{detected_within_ms(ClusterImage()):,} ms for a detection" in text
    assert f"{FAILOVER_LEASES} leases for a failover" in text
