"""Rules for bundles in files of users: what they may say, and what is refused with a sentence that helps."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.bootstrap.bundle_rules import load_bundle_rules
from controlplane.core.bundles.load.averages import UNSEEN_BUNDLE
from controlplane.core.bundles.load.leader_fold import LeaderLoads
from controlplane.core.bundles.load.view import BundleHistory
from controlplane.core.bundles.placement.context import modular_context
from controlplane.core.bundles.placement.contract import BundleToPlace
from controlplane.core.bundles.placement.extensible import ExtensiblePlacement
from controlplane.core.bundles.profiles.chosen_rules import chosen_rules
from controlplane.core.bundles.profiles.composition import REGISTRY, compose
from controlplane.core.bundles.profiles.values import CONTROLPLANE, PULSAR_4_2_EXTENSIBLE, PULSAR_4_2_MODULAR
from controlplane.errors import ConfigurationError
from tests.helpers.load_views import loaded_node, traffic, view_of

SHEDDER = "loadBalancerLoadSheddingStrategy"
SUPPORTED, DEFAULT = "supportedNamespaceBundleSplitAlgorithms", "defaultNamespaceBundleSplitAlgorithm"
HEAD = """
from dataclasses import dataclass, field
from controlplane.bundle_rules import *

@dataclass(frozen=True)
class Settings:
    limit: float = knob("{knob}", 1.0)
    weights: ResourceWeights = field(default_factory=ResourceWeights)

    def __post_init__(self):
        if self.limit < 0:
            raise ValueError("limit is negative")

@dataclass(frozen=True)
class Mine:
    settings: Settings = Settings()
    name = "{name}"
    first_memory = None

    def shed(self, view, memory):
        return Shedding((), memory)

    def retain(self, memory, active):
        return memory

    def after_unload(self, memory, choice, outcome, now_ms):
        return memory

class Odd:
    name = "odd-names"
    def keep(self, bundle, candidates, context):
        kept = tuple(each for each in candidates if each[-1] in "13579")
        return Filtering(self.name, kept, tuple(Dropped(each, each, "odd") for each in candidates if each not in kept))

class Halves:
    name = "acme.halves"
    def choose(self, request):
        return SplitPositions((request.bundle.lower + 1,), "one")
"""
ALL = """BUNDLE_RULES = (
    BundleRule(RuleKind.SHEDDER, Mine, Settings),
    BundleRule(RuleKind.FILTER, Odd, manager=None),
    BundleRule(RuleKind.SPLIT_ALGORITHM, Halves),
)"""
ONE = "BUNDLE_RULES = (BundleRule(RuleKind.SHEDDER, Mine, Settings),)"


def text(end: str = ONE, name: str = "Mine", knob: str = "mineLimit") -> str:
    """A whole file."""
    return HEAD.replace("{name}", name).replace("{knob}", knob) + end + "\n"


def written(folder: Path, content: str, file_name: str = "mine.py") -> Path:
    """A file with this text."""
    path = folder / file_name
    path.write_text(content, encoding="utf-8")
    return path


def test_without_files_there_are_the_built_in_rules() -> None:
    """Nothing else is looked for anywhere."""
    assert load_bundle_rules([]) is REGISTRY


def test_every_kind_of_rule_is_chosen_by_name(tmp_path: Path) -> None:
    """With its knobs, and with the shared settings of the profile."""
    registry = load_bundle_rules([written(tmp_path, text(ALL))])
    knobs = {
        SHEDDER: "Mine",
        "mineLimit": 3.0,
        "loadBalancerCPUResourceWeight": 0.5,
        "nodeFilters": ("odd-names",),
        SUPPORTED: ("halves", "range_equally_divide"),
        DEFAULT: "acme.halves",
    }
    with pytest.raises(ConfigurationError, match=rf"is 'acme\.halves', allowed is one of {SUPPORTED}: halves, range"):
        compose(PULSAR_4_2_MODULAR, knobs, registry)
    knobs[DEFAULT] = "halves"
    composition = compose(PULSAR_4_2_MODULAR, knobs, registry)
    rules: Any = chosen_rules(composition)
    assert (rules.shedder.settings.limit, rules.shedder.settings.weights.cpu) == (3.0, 0.5)
    assert rules.shedder.settings.weights.keeps_infinite_usage
    assert [each.name for each in rules.selection.own_filters] == ["odd-names"]
    assert rules.split_algorithms.executed("").name == "acme.halves"
    assert set(rules.split_algorithms.by_name) == {"halves", "range_equally_divide"}


def test_a_users_filter_comes_last_in_the_selection(tmp_path: Path) -> None:
    """Under both managers, if it serves both."""
    registry = load_bundle_rules([written(tmp_path, text(ALL))])
    knobs = {"nodeFilters": ("odd-names",)}
    view = view_of(
        *(loaded_node(f"n{each}:1", 1, traffic(0)) for each in (2, 4)), loaded_node("x", 1, traffic(0)), bundles={}
    )
    view = view_of(*(loaded_node(f"n{each}", 1, traffic(0)) for each in (2, 3, 4)), bundles={})
    selection: Any = chosen_rules(compose(CONTROLPLANE, knobs, registry)).selection
    bundle = BundleToPlace("t/n/0", BundleHistory(UNSEEN_BUNDLE))
    placed = selection.place(
        bundle,
        modular_context(LeaderLoads(view.nodes, view.bundles), tuple(view.nodes)),
        selection.first_memory,
        (0.0, 0.0),
    )
    assert (placed.node_id, placed.steps[-1].filter_name) == ("n3", "odd-names")
    extensible = chosen_rules(compose(PULSAR_4_2_EXTENSIBLE, knobs, registry)).selection
    assert isinstance(extensible, ExtensiblePlacement)
    assert [each.name for each in extensible.own_filters] == ["odd-names"]


def test_a_rule_of_one_manager_is_refused_by_the_other(tmp_path: Path) -> None:
    """Its view is another one."""
    registry = load_bundle_rules([written(tmp_path, text())])
    with pytest.raises(ConfigurationError, match="shedder 'Mine' belongs to the other load manager"):
        compose(PULSAR_4_2_EXTENSIBLE, {SHEDDER: "Mine"}, registry)


def test_a_value_that_the_users_settings_refuse_is_a_refusal(tmp_path: Path) -> None:
    """Of whatever kind the error is."""
    registry = load_bundle_rules([written(tmp_path, text())])
    with pytest.raises(ConfigurationError, match=r"^mineLimit=-1.0: limit is negative$"):
        compose(CONTROLPLANE, {"mineLimit": -1.0}, registry)
    fails = text().replace(
        'name = "Mine"', 'name = "Mine"\n    def __post_init__(self):\n        1 / (self.settings.limit - 9)'
    )
    registry = load_bundle_rules([written(tmp_path, fails)])
    with pytest.raises(ConfigurationError, match=r"'Mine' cannot be made with mineLimit=9\.0.*: ZeroDivision"):
        chosen_rules(compose(CONTROLPLANE, {SHEDDER: "Mine", "mineLimit": 9.0}, registry))


REFUSED = {
    "no rules": (text("x = 1"), "it has no rules for bundles; end it with BUNDLE_RULES = (BundleRule("),
    "an empty list": (text("BUNDLE_RULES = ()"), "it has no rules for bundles"),
    "a class": (
        text("BUNDLE_RULES = (Mine,)"),
        "BUNDLE_RULES[0]: Mine is not a BundleRule; write BundleRule(RuleKind.SHEDDER, Mine)",
    ),
    "an object": (text("BUNDLE_RULES = [3]"), "BUNDLE_RULES[0]: int is not a BundleRule"),
    "no kind": (text("BUNDLE_RULES = (BundleRule('shedder', Mine, Settings),)"), "its kind is 'shedder', not one of"),
    "no class": (text("BUNDLE_RULES = (BundleRule(RuleKind.SHEDDER, Mine()),)"), "its rule is Mine("),
    "no manager": (
        text("BUNDLE_RULES = (BundleRule(RuleKind.SHEDDER, Mine, Settings, 'modular'),)"),
        "the manager of Mine is 'modular', not one of Manager",
    ),
    "a shedder for both managers": (
        text("BUNDLE_RULES = (BundleRule(RuleKind.SHEDDER, Mine, Settings, None),)"),
        "Mine: a shedder takes the view of one load manager; name it",
    ),
    "another kind": (
        text("BUNDLE_RULES = (BundleRule(RuleKind.PLACEMENT, Mine, Settings),)"),
        "Mine has no select(bundle, candidates, view, memory), which a placement has to have; Mine has no after_pick",
    ),
    "no memory": (text().replace("first_memory = None", ""), "Mine has no first_memory, which a shedder has to have"),
    "nothing after an unload": (
        text().replace("def after_unload", "def before_unload"),
        "Mine has no after_unload(memory, choice, outcome, now_ms), which a shedder has to have",
    ),
    "other arguments": (text().replace("shed(self, view, memory)", "shed(self, view)"), "has to take (view, memory)"),
    "no name": (text(name=""), "Mine.name is ''; a name has letters"),
    "a list as a name": (text(name="a,b"), "Mine.name is 'a,b'; a name has letters"),
    "a class that cannot be made": (
        text("BUNDLE_RULES = (BundleRule(RuleKind.FILTER, Odd, Settings),)"),
        "Odd cannot be made: TypeError",
    ),
    "settings that may change": (
        text()
        .replace("@dataclass(frozen=True)\nclass Settings", "@dataclass\nclass Settings")
        .replace("= Settings()", "= None"),
        "its settings class Settings is not a frozen dataclass; write @dataclass(frozen=True) above it",
    ),
    "settings without a default": (
        text().replace("    limit:", "    size: int\n    limit:").replace("= Settings()", "= None"),
        "its settings class Settings has to have a default for each field: TypeError",
    ),
    "settings that are no class": (text(ONE.replace("Settings)", "3)")), "its settings are 3, not a class"),
    "a knob twice": (
        text().replace("    weights:", '    other: int = knob("mineLimit", 1)\n    weights:'),
        "its settings class Settings has the knob 'mineLimit' twice",
    ),
    "a knob of a built-in rule": (
        text(knob="maxUnloadPercentage"),
        "Mine: Settings: the knob 'maxUnloadPercentage' is that of UniformSettings already",
    ),
    "a knob without effect": (
        text(knob="loadBalancerOverrideBrokerNics"),
        "the knob 'loadBalancerOverrideBrokerNics' is that of one without effect already",
    ),
    "a built-in name": (text(name="ThresholdShedder"), "Mine: the name 'ThresholdShedder' is that of a built-in one"),
    "the end of a built-in name": (text(name="x.AvgShedder"), "the name 'x.AvgShedder' is that of a built-in one"),
    "a name twice": (text(ONE.replace(",)", ",) * 2")), "the name 'Mine' is that of Mine in "),
    "an error": ("x = 1\ny = x / 0\n", "mine.py, line 2: ZeroDivisionError: division by zero"),
    "no Python": ("x = (\n", "mine.py: SyntaxError: '(' was never closed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_holds_no_usable_rule_is_refused(case: str, tmp_path: Path) -> None:
    """Named with its file, its class and what was expected."""
    content, sentence = REFUSED[case]
    path = written(tmp_path, content)
    with pytest.raises(ConfigurationError) as refused:
        load_bundle_rules([path])
    assert sentence in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_files_do_not_replace_each_others_rules_and_knobs(tmp_path: Path) -> None:
    """Two files of one name in two folders are two files; the message names the first one."""
    (tmp_path / "other").mkdir()
    first = written(tmp_path, text())
    other = written(tmp_path / "other", text(name="Other"))
    with pytest.raises(ConfigurationError, match=f"the knob 'mineLimit' is that of Settings in {first} already"):
        load_bundle_rules([first, other])
    registry = load_bundle_rules([first, written(tmp_path / "other", text(name="Other", knob="otherLimit"))])
    assert {"mineLimit", "otherLimit"} <= compose(CONTROLPLANE, registry=registry).knobs().keys()


@pytest.mark.parametrize("name", ["nowhere.py", "rules.txt"])
def test_what_is_no_python_file_is_refused(name: str, tmp_path: Path) -> None:
    """A mistyped path is one sentence."""
    written(tmp_path, text(), "rules.txt")
    with pytest.raises(ConfigurationError, match="there is no such Python file"):
        load_bundle_rules([tmp_path / name])
