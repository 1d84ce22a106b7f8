"""Rules for bundles of one's own: the example keeps its promises, and the how-to page works as it stands there."""

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from controlplane.bundle_rules import LeaderLoads, chosen_rules, compose, load_bundle_rules, modular_context
from controlplane.cli.root import root
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.testing import check_placement, check_shedder
from tests.helpers.load_views import bundle_history, loaded_node, traffic, view_of
from tests.helpers.readme import ROOT, blocks, console_commands, run

PAGE = ROOT / "docs" / "how-to" / "write-a-bundle-rule.md"
EXAMPLE = ROOT / "examples" / "bundle_rules" / "busiest_first.py"
KNOBS: dict[str, object] = {
    "loadBalancerLoadSheddingStrategy": "BusiestFirst",
    "loadBalancerLoadPlacementStrategy": "MostRoom",
    "messageLimitPerNode": 90.0,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the page's rule in the file that its commands name."""
    (tmp_path / "my_rules.py").write_text(blocks(PAGE)["rule"], encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("block", "output"), [("try", "tried"), ("check", None)])
def test_the_pages_blocks_print_what_the_page_shows(folder: Path, block: str, output: str | None) -> None:
    """The page's own rule, asked and checked as the page does it."""
    (folder / "block.py").write_text(blocks(PAGE)[block], encoding="utf-8")
    expected = "" if output is None else blocks(PAGE)[output]
    assert run([sys.executable, "block.py"], folder, {"PYTHONPATH": str(ROOT)}) == expected


def test_the_pages_commands_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, without any cluster; the last one shows the page's rule."""
    monkeypatch.chdir(folder)
    outputs = []
    for words in console_commands("controlplane", PAGE):
        done = CliRunner().invoke(root, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        outputs.append(done.output)
    assert len(outputs) == 4
    assert "CountShedder" in outputs[-1]
    assert "maxBundlesPerNode" in outputs[-1]


def test_the_example_keeps_its_promises() -> None:
    """Those that every rule makes, for the page's example and for a limit that is exceeded and one that is not."""
    registry = load_bundle_rules([EXAMPLE])
    for limit in (1.0, 500.0, 1e6):
        rules = chosen_rules(compose("controlplane", {**KNOBS, "messageLimitPerNode": limit}, registry))
        check_shedder(rules.shedder)
        strategy: Any = rules.selection.strategy
        check_placement(strategy)


def test_the_example_sheds_to_the_limit_and_places_where_there_is_room() -> None:
    """A node of 180 messages per second and a limit of 90 gives away 90, not more; the idle node gets it."""
    composition = compose("controlplane", KNOBS, load_bundle_rules([EXAMPLE]))
    rates = {"t/n/a": 90.0, "t/n/b": 60.0, "t/n/c": 30.0}
    view = view_of(
        loaded_node("n1", 10, traffic(0, 180), *rates),
        loaded_node("n2", 10, traffic(0, 10)),
        bundles={name: bundle_history(0, rate) for name, rate in rates.items()},
    )
    shedding = chosen_rules(composition).shedder.shed(view, None)
    assert shedding.bundles_by_node() == {"n1": ["t/n/a"]}
    selection: Any = chosen_rules(composition).selection
    bundle = BundleToPlace("t/n/a", view.bundles["t/n/a"])
    context = modular_context(LeaderLoads(view.nodes, view.bundles), tuple(view.nodes))
    assert selection.place(bundle, context, selection.first_memory, (0.0, 0.0)).node_id == "n2"
