"""The pages for operators of Pulsar: every knob stands there, and names and values are those that there are."""

import re
import runpy
from dataclasses import fields, is_dataclass

from controlplane.core.bundles.profiles.composition import REGISTRY, compose
from controlplane.core.bundles.profiles.values import KNOBS_WITHOUT_EFFECT, PROFILES, PULSAR_4_2_MODULAR, UNREAD_KNOBS
from controlplane.core.bundles.settings.knobs import knobs_of
from docs.reference.pulsar_settings import knob_uses, settings_of, use_of
from streaming.config import LoadRuleConfig
from tests.conformance.pulsar import loads
from tests.conformance.recorded import recorded
from tests.helpers.readme import ROOT

REFERENCE = ROOT / "docs" / "reference"
DRAWN = runpy.run_path(str(REFERENCE / "generate_pulsar_knobs.py"))
KNOBS = (REFERENCE / "pulsar-knobs.md").read_text(encoding="utf-8")
PAGES = tuple(ROOT / "docs" / "how-to" / name for name in ("come-from-pulsar.md", "choose-a-profile.md"))
DEVIATIONS: dict[str, str] = {}
"""By knob, why its value under the profile of 4.2 is not the recorded one."""

HANDED_ON = {
    "NamespaceSettings.last_hash_has_no_bundle": "an argument of Boundaries.range_of_hash",
    "NamespaceSettings.name_part_counts": "an argument of names.check_namespace",
}
"""Switches that nothing reads, because the caller of a rule hands their value on."""


def text_of_pages() -> str:
    """The how-to pages for operators of Pulsar."""
    return "".join(page.read_text(encoding="utf-8") for page in PAGES)


def recorded_defaults() -> dict[str, object]:
    """The defaults of Pulsar 4.2's configuration."""
    (case,) = recorded("pulsar")["defaults"]
    defaults: dict[str, object] = case["out"]
    return defaults


def test_every_knob_has_its_row() -> None:
    """Those that Pulsar has and those that a profile accepts."""
    known = recorded_defaults().keys() | compose(PULSAR_4_2_MODULAR).knobs().keys()
    _, tables = KNOBS.split("\n## Knobs\n")
    rows = set(re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE))
    assert rows == known


def test_values_are_pulsars() -> None:
    """Under the profile of the version whose defaults were recorded."""
    declared = loads.defaults({})
    differing = {name for name, value in recorded_defaults().items() if declared[name] != value}
    assert differing == DEVIATIONS.keys()


def test_reasons_are_given_for_the_knobs_that_need_one() -> None:
    """Somebody who sets a knob without an effect wants to know why it has none."""
    assert DRAWN["UNREAD"].keys() == UNREAD_KNOBS
    assert DRAWN["WITHOUT_EFFECT"].keys() == KNOBS_WITHOUT_EFFECT.keys()


def test_every_rule_that_is_made_from_settings_reads_some() -> None:
    """A rule whose class of settings is not found would be missing in the column of readers."""
    read = {reader for uses in knob_uses().values() for use in uses for reader in use.readers}
    assert {rule.short_name for rule in REGISTRY.rules if settings_of(rule)} <= read


def test_names_of_the_how_to_page_are_there() -> None:
    """Profiles, rules and knobs."""
    text = text_of_pages()
    assert all(f"`{name}`" in text for name in PROFILES)
    assert all(f"`{rule.short_name}`" in text for rule in REGISTRY.rules)
    known = compose(PULSAR_4_2_MODULAR).knobs().keys()
    assert set(re.findall(r"`((?:loadB|default[NS]|minUn|maxUn|metadataSt)\w+)`", text)) <= known


def test_switches_of_the_how_to_page_are_there() -> None:
    """A switch is named with its class."""
    known = {part.settings.__name__: {each.name for each in fields(part.settings)} for part in REGISTRY.parts}
    named = re.findall(r"`(\w+Settings)\.(\w+)`", text_of_pages())
    assert named
    assert [f"{kind}.{name}" for kind, name in named if name not in known[kind]] == []


def test_a_knob_is_read_by_a_rule_or_listed_as_one_without_effect() -> None:
    """Never both, and never neither: an operator who sets a knob that nothing reads is told so."""
    read = {knob for knob, uses in knob_uses().items() if any(use.readers for use in uses)}
    listed = [*KNOBS_WITHOUT_EFFECT, *UNREAD_KNOBS]
    assert sorted([*read, *listed]) == sorted(knob_uses().keys() | KNOBS_WITHOUT_EFFECT.keys())


def test_every_switch_is_read() -> None:
    """A quirk that a profile switches on, and that no rule looks at, would be a promise that nothing keeps."""
    switches = {
        (part.settings, each.name)
        for part in REGISTRY.parts
        for each in fields(part.settings)
        if each.name not in {name for _, name in knobs_of(part.settings)}
        and not is_dataclass(getattr(part.settings(), each.name))
    }
    unread = {f"{kind.__name__}.{name}" for kind, name in switches if not use_of(kind, name).readers}
    assert unread == HANDED_ON.keys()


def test_no_reason_is_given_for_a_knob_that_is_read() -> None:
    """It would be untrue, and the page would not show it."""
    assert DRAWN["UNREAD"].keys() == UNREAD_KNOBS


def test_the_pipelines_settings_are_there_and_have_pulsars_numbers() -> None:
    """A time may be in another unit; every other number is the knob's value under the profile of 4.2."""
    knobs = compose(PULSAR_4_2_MODULAR).knobs()
    per_unit = {"Minutes": 60_000, "Seconds": 1_000}
    for knob, path in DRAWN["PIPELINE"].items():
        value: object = LoadRuleConfig()
        for name in path.split("."):
            value = getattr(value, name)
        factor = next((ms for unit, ms in per_unit.items() if knob.endswith(unit)), 1)
        assert knobs[knob] * factor == value, knob  # type: ignore[operator]  # a number
    assert "| `loadBalancerTransferEnabled` | `true` | `true`, `false` | `TransferShedder` | nothing |" in KNOBS
    assert "| 0 to 100 | `ThresholdShedder` | pipeline, as `shed.threshold_percent` |" in KNOBS


def test_pages_name_the_node_or_program_that_they_mean() -> None:
    """Instead of a word for any person."""
    words = re.compile(r"\b(?:nobody|anybody|whoever)\b", re.IGNORECASE)
    folders = ("how-to", "reference", "explanation")
    pages = [ROOT / "README.md", *(page for folder in folders for page in (ROOT / "docs" / folder).glob("*.md"))]
    assert [page.name for page in pages if words.search(page.read_text(encoding="utf-8"))] == []
