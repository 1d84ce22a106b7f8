"""Every knob and every switch of the rules through the stages that it has to pass; what is missing is named."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from controlplane.core.bundles.profiles.composition import REGISTRY, compose
from controlplane.core.bundles.profiles.values import PROFILES, UNREAD_KNOBS
from controlplane.core.bundles.settings.knobs import knobs_of
from tests.conformance.recorded import recorded

UNIT_TESTS: Final = Path(__file__).parents[1]
KNOBS: Final = [(part.settings, knob, name) for part in REGISTRY.parts for knob, name in knobs_of(part.settings)]
SAME_EVERYWHERE: Final = {
    "OwnershipSettings.leaves_assigned_at_start": "of Pulsar before #25379, which no profile is known to be",
    "OwnerSplitSettings.limits_sessions_below_one": "of the leader's limits, which the owner's extend",
    "OwnerSplitSettings.min_topics": "likewise",
}
"""Switches that no profile changes, and why there are."""
BY_PROFILE: Final = {
    "ManagerSettings.sheds_on_implausible_loads": "test_chosen_rules.py",
    "SplitSettings.min_nodes": "test_pulsar_2.py",
}
"""Switches whose tests choose a profile instead, and the file of these tests in this folder."""


def switches() -> Iterator[tuple[type, str]]:
    """The fields that are no knobs, by their class."""
    for part in REGISTRY.parts:
        known = {name for _, name in knobs_of(part.settings)}
        for each in fields(part.settings):
            if each.name not in known and not is_dataclass(getattr(part.settings(), each.name)):
                yield part.settings, each.name


SWITCHES: Final = list(switches())


@cache
def words_of_tests() -> frozenset[str]:
    """The words of all unit tests of the rules but this one."""
    paths = [path for path in UNIT_TESTS.rglob("test_*.py") if path != Path(__file__)]
    return frozenset(word for path in paths for word in re.findall(r"\w+", path.read_text(encoding="utf-8")))


@cache
def recorded_knobs() -> frozenset[str]:
    """The knobs that recorded cases set."""
    inputs = [case["in"] for cases in recorded("pulsar").values() for case in cases if isinstance(case["in"], dict)]
    return frozenset(knob for given in inputs for knob in given.get("conf") or ())


@pytest.mark.parametrize(("settings", "knob", "name"), KNOBS, ids=[f"{each[0].__name__}-{each[1]}" for each in KNOBS])
def test_a_knob_that_is_read_is_set_by_a_recorded_case_or_a_test(settings: type, knob: str, name: str) -> None:
    """Otherwise the rule could as well have the default for a constant."""
    named = knob in UNREAD_KNOBS | recorded_knobs() | words_of_tests() or name in words_of_tests()
    assert named, f"no recorded case and no test of the rules sets {knob} ({settings.__name__}.{name})"


@pytest.mark.parametrize(("settings", "name"), SWITCHES, ids=[f"{each[0].__name__}.{each[1]}" for each in SWITCHES])
def test_a_switch_is_tested_and_differs_in_a_profile(settings: type, name: str) -> None:
    """A switch that no profile sets decides nothing, and one that no test sets may decide anything."""
    switch = f"{settings.__name__}.{name}"
    values = [getattr(compose(profile).by_class[settings], name) for profile in PROFILES]
    assert (switch in SAME_EVERYWHERE) is all(value == values[0] for value in values), "is it in values.py?"
    if switch in BY_PROFILE:
        assert Path(__file__).with_name(BY_PROFILE[switch]).is_file()
    else:
        assert name in words_of_tests(), "no test of the rules names it"
