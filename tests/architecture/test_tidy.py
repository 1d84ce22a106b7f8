"""The tree keeps to the rules of tidy.py, and each rule catches what it is for."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture import tidy


def test_core_imports_nothing_impure() -> None:
    """The core has no clock, randomness, threads, logs or machine: that is what makes replay exact."""
    core = tidy.ROOT / "controlplane" / "core"
    offenders = {
        _name(path): sorted(banned)
        for path in tidy.python_files("controlplane")
        if path.is_relative_to(core)
        and (banned := tidy.imported_modules(path.read_text(encoding="utf-8")) & tidy.CORE_BANNED_MODULES)
    }
    assert offenders == {}


def test_adapters_are_named_after_the_client_they_import() -> None:
    """Who looks for what talks to Kafka or Redis finds all of it by file name."""
    adapters = tidy.ROOT / "controlplane" / "adapters"
    offenders = {
        _name(path): clients
        for path in tidy.python_files("controlplane")
        if path.is_relative_to(adapters)
        and (clients := tidy.misplaced_clients(path.name, path.read_text(encoding="utf-8")))
    }
    assert offenders == {}


def test_the_page_on_architecture_names_every_room_of_the_core() -> None:
    """In the order of the import contract, so that the page cannot fall behind the tree."""
    page = (tidy.ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("| room of `controlplane/core/` |")[1].split("\n\n")[0]
    named = re.findall(r"^\| `(\w+)/` \|", table, re.MULTILINE)
    contracts = tomllib.loads((tidy.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (each["layers"] for each in contracts["contracts"] if each["id"] == "core-layers")
    assert named == [room for layer in layers for room in layer.split(" | ")]
    assert sorted(named) == sorted(path.parent.name for path in (tidy.ROOT / "controlplane/core").glob("*/__init__.py"))


def test_the_page_on_architecture_names_every_part_in_the_order_of_its_layers() -> None:
    """A part stands below those that it may import; parts of one layer may stand in any order."""
    page = (tidy.ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("| part | where |")[1].split("\n\n")[0]
    named = re.findall(r"`controlplane/(\w+)(?:\.py|/)`", table)
    contracts = tomllib.loads((tidy.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (each["layers"] for each in contracts["contracts"] if each["id"] == "layers")
    level = {part: -number for number, layer in enumerate(layers) for part in re.split(r" [|:] ", layer)}
    assert set(named) == level.keys()
    assert [level[name] for name in named] == sorted(level[name] for name in named)


def test_the_page_on_the_pipeline_names_every_room_in_the_order_of_its_layers() -> None:
    """A row of its table for each layer, the highest first."""
    page = (tidy.ROOT / "docs" / "explanation" / "pipeline.md").read_text(encoding="utf-8")
    table = page.split("| rooms of `streaming/` |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [sorted(re.findall(r"`(\w+)/?`", row)) for row in rows]
    contracts = tomllib.loads((tidy.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (each["layers"] for each in contracts["contracts"] if each["id"] == "streaming-layers")
    assert named == [sorted(layer.split(" | ")) for layer in layers]


def test_no_file_is_too_long() -> None:
    """A file is one room: a newcomer reads it in one go."""
    lengths = {_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in tidy.python_files()}
    assert {name: lines for name, lines in lengths.items() if lines > tidy.LONGEST_FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    """A function that does not fit on a screen and a half hides something that deserves a name."""
    offenders = {_name(path): tidy.long_functions(path.read_text(encoding="utf-8")) for path in tidy.python_files()}
    assert {name: functions for name, functions in offenders.items() if functions} == {}


def test_every_test_says_what_it_checks() -> None:
    """A failing test is read by somebody who did not write it."""
    files = tidy.python_files("tests", "examples", "benchmarks")
    offenders = {_name(path): tidy.undocumented_tests(path.read_text(encoding="utf-8")) for path in files}
    assert {name: tests for name, tests in offenders.items() if tests} == {}


def test_every_assertion_can_fail() -> None:
    """What follows ``else`` in an assertion is the whole assertion there."""
    files = tidy.python_files("tests")
    offenders = {_name(path): tidy.asserts_of_literals(path.read_text(encoding="utf-8")) for path in files}
    assert {name: asserts for name, asserts in offenders.items() if asserts} == {}


def test_no_file_names_a_registry_or_one_machine() -> None:
    """Where packages come from, and where a checkout lies, is the machine's business."""
    offenders = {_name(path): tidy.foreign_names(path.read_text(encoding="utf-8")) for path in tidy.text_files()}
    assert {name: found for name, found in offenders.items() if found} == {}


def test_what_git_keeps_in_a_worktree_is_no_file_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There ``.git`` is a file with a path of this machine; a checkout has a folder in its place."""
    (tmp_path / ".git").write_text("gitdir: elsewhere\n", encoding="utf-8")
    (tmp_path / "Makefile").write_text("", encoding="utf-8")
    monkeypatch.setattr(tidy, "ROOT", tmp_path)
    assert [path.name for path in tidy.text_files()] == ["Makefile"]


def test_imports_are_found_wherever_they_stand() -> None:
    """An import inside a function would evade a check of the file's head."""
    source = "import a.b\nfrom c.d import e\nfrom . import f\ndef g():\n    import time as t\n"
    assert tidy.imported_modules(source) == {"a", "c", "time"}


def test_misplaced_client_is_found() -> None:
    """The rule tells an adapter of Kafka from one of Redis."""
    assert tidy.misplaced_clients("redis_lease.py", "import redis\nimport confluent_kafka") == ["confluent_kafka"]
    assert tidy.misplaced_clients("kafka_log.py", "from confluent_kafka import Producer") == []


def test_long_function_is_found_at_its_first_line_too_many() -> None:
    """The limit itself is allowed, one line more is not."""
    source = "def f():\n" + "    x = 1\n" * 4
    assert tidy.long_functions(source, longest=5) == []
    assert tidy.long_functions(source, longest=4) == ["f (line 1) has 5 lines"]


def test_undocumented_test_is_found() -> None:
    """Neither a missing nor an empty docstring is a sentence; helpers need none here."""
    source = 'def test_a(): pass\ndef test_b(): """ """\ndef test_c(): """Says it."""\ndef helper(): pass\n'
    assert tidy.undocumented_tests(source) == ["test_a (line 1)", "test_b (line 2)"]


def test_assertion_of_a_literal_is_found() -> None:
    """A condition within the expected value is none."""
    source = "assert a == b if c else (1, 2)\nassert a == (b if c else (1, 2))\nassert a if c else b == 1\n"
    assert tidy.asserts_of_literals(source) == ["line 1: assert a == b if c else (1, 2)"]


def test_foreign_names_are_found_and_neighbours_are_not() -> None:
    """A path of one machine is told from words that only look like it."""
    host = "https://" + "pypi" + ".org/simple"
    path = "cd /" + "root/project/"
    assert len(tidy.foreign_names(f"{host}\n{path}\n")) == 2
    assert tidy.foreign_names("network/io, ${HOME}/" + "work/, the root/leaf, /tmp/x/, /usr/lib/jvm/") == []


def _name(path: Path) -> str:
    return str(path.relative_to(tidy.ROOT))
