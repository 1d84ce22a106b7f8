"""Scenarios: text files with commands for the core and the output that is expected of it."""

import difflib
from functools import partial
from pathlib import Path

import pytest

from tests.scenarios.engine.cluster import Cluster
from tests.scenarios.engine.commands import COMMANDS, perform
from tests.scenarios.engine.script import ScenarioError, parse, rendered

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.txt"))
OPENING = "# What is shown.\n\n"


def played(text: str) -> str:
    """A scenario's text with the output that its commands have now."""
    return rendered(parse(text), partial(perform, Cluster()))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    """The core does what the file says; with ``--rewrite`` the file says what the core does."""
    expected = path.read_text(encoding="utf-8")
    actual = played(expected)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(actual, encoding="utf-8")
    elif actual != expected:
        name = f"tests/scenarios/{path.name}"
        lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(), name, "now", lineterm="", n=2)
        difference = "\n".join(lines)
        pytest.fail(
            f"{difference}\n\nIf this is what you meant: python -m pytest tests/scenarios --rewrite", pytrace=False
        )


def test_there_are_scenarios() -> None:
    """A folder that was not found would have no test that fails."""
    assert len(FILES) > 10


def test_outputs_are_made_anew() -> None:
    """What stands below ``----`` is compared and never read: a rewritten file depends on its commands alone."""
    commands = f"{OPENING}policy slot_count=2\njoin n1\nrun 300ms\n----\n"
    fresh = played(commands)
    assert "NodeAdmitted n1" in fresh
    assert played(f"{commands}something else\n") == fresh
    assert played(fresh) == fresh


def test_every_command_is_used_and_documented() -> None:
    """The syntax of each stands in the README as its docstring says it, and some scenario shows it."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    syntaxes = {name: (handler.__doc__ or "").split("``")[1] for name, handler in COMMANDS.items()}
    assert [name for name, syntax in syntaxes.items() if syntax.split()[0] != name] == []
    assert [name for name, syntax in syntaxes.items() if f"`{syntax}`" not in page] == []
    used = {line.split()[0] for path in FILES for line in path.read_text(encoding="utf-8").splitlines() if line}
    assert COMMANDS.keys() - used == set()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy slot_count=8\n----\n", "line 1: a scenario opens with a paragraph"),
        (f"{OPENING}policy slot_count=8\n", "line 3: a block of commands ends with a line '----'"),
        (f"{OPENING}policy\n# late\n----\n", "line 3: prose stands above the commands"),
        (f"{OPENING}fly n1\n----\n", "line 3, 'fly n1': 'fly' is no command"),
        (f"{OPENING}run 1s\n----\n", "a scenario begins with the command 'policy'"),
        (f"{OPENING}policy\nrun 1.5s\n----\n", "line 4, 'run 1.5s': '1.5s' is no time"),
        (f"{OPENING}policy\nrun 1s silent=n1\n----\n", "node 'n1' has no process that runs"),
        (f"{OPENING}policy\njoin n1 wieght=2\n----\n", "join has no setting 'wieght'"),
        (f"{OPENING}policy\njoin n1 handoffs=some\n----\n", "handoffs is yes or no, found 'some'"),
        (f"{OPENING}policy\napply NodeLost node_id=n1\n----\n", "'NodeLost' is no event"),
        (f"{OPENING}policy\napply EvictionsResumed\n----\n", "EvictionsResumed lacks reason"),
    ],
)
def test_a_scenario_that_is_written_wrongly_is_refused(text: str, said: str) -> None:
    """A misspelt setting that was passed over would show another scenario than the one that is meant."""
    with pytest.raises(ScenarioError) as caught:
        played(text)
    assert said in str(caught.value)
