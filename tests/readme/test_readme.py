"""What the README promises works as it stands there."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from streaming.contracts.catalog import ALL_TABLES
from tests.helpers.readme import README, ROOT, ReadmeCluster, Running, blocks, commands, run

OUR_IMPORTS = {"PYTHONPATH": str(ROOT)}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_produce_and_consume_doors(readme_cluster: ReadmeCluster, tmp_path: Path) -> None:
    """The first code that a newcomer copies has to run, and to print what the page shows."""
    folder = tmp_path
    produce = [sys.executable, str(readme_cluster.snippet("produce", folder))]
    with Running(produce, folder, OUR_IMPORTS) as node:
        node.wait_until(lambda: "slots ready" in node.output)
        printed = run([sys.executable, str(readme_cluster.snippet("consume", folder))], folder, OUR_IMPORTS)
        # Before it stand log lines: structlog prints them where nobody configured it.
        assert without_epoch(printed.splitlines()[-1]) == without_epoch(blocks()["consumed"].rstrip())
        assert node.end() == 0, node.output


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_restart_door(readme_cluster: ReadmeCluster, tmp_path: Path) -> None:
    """The example starts and ends its own brokers; nothing that it acknowledged is missing."""
    printed = readme_cluster.run_block("restart", tmp_path)
    figures = dict(line.split(": ", 1) for line in printed[-1].splitlines())
    assert int(figures["sent"]) == int(figures["acknowledged"]) > 500
    assert figures["missing"] == figures["doubled"] == figures["out of order for their key"] == "0"
    delete = [sys.executable, "-m", "controlplane.cli", "namespaces", "delete", "shop/orders"]
    run(delete, readme_cluster.folder, OUR_IMPORTS)


def test_query_door_names_what_is_there() -> None:
    """The SQL of the README asks for columns that the table's contract promises."""
    ((statement,),) = [words[1:] for words in commands("controlplane") if words[0] == "sql" and len(words) > 1]
    found = re.fullmatch(r"SELECT ([\w, ]+) FROM (\w+) ORDER BY (\w+) DESC LIMIT \d+", statement)
    assert found, f"teach this test to read {statement!r}"
    (contract,) = [table for table in ALL_TABLES if table.name == found[2]]
    assert {*found[1].split(", "), found[3]} - set(contract.columns) == set()


@pytest.mark.slow
@pytest.mark.parametrize("words", commands("controlplane"), ids=" ".join)
def test_command_exists(words: list[str], tmp_path: Path) -> None:
    """Every command and option in the README is one that the command knows."""
    printed = run([sys.executable, "-m", "controlplane.cli", *words, "--help"], tmp_path, OUR_IMPORTS)
    assert printed.startswith("Usage: controlplane ")


@pytest.mark.parametrize("words", commands("make"), ids=" ".join)
def test_make_target_exists(words: list[str]) -> None:
    """Every make target in the README is in the Makefile."""
    make = shutil.which("make")
    assert make, "the README's commands need make: install it"
    run([make, "--dry-run", *words], ROOT)


def test_links_and_folders_exist() -> None:
    """A link or a folder of the map that leads nowhere costs a newcomer's trust."""
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"\]\((?!https?:)([^)#]+)", text))
    for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE):
        named |= set(re.findall(r"`([^`]+)`", row))
    assert len(named) > 10
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def without_epoch(line: str) -> str:
    """A line of output without the number that depends on how often the table changed before."""
    return re.sub(r"epoch \d+", "epoch N", line)
