"""The page for operators of SOFARegistry names commands and settings that there are."""

import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from controlplane.cli.common.settings_option import parse_settings
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.policies.sofa import SofaOptions, SofaPolicy
from tests.helpers.commands import RunCommand

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "come-from-sofaregistry.md"
TEXT = PAGE.read_text(encoding="utf-8")
CONSOLE = [line.split() for line in re.findall(r"^\$ controlplane (.*)$", TEXT, re.MULTILINE)]
NAMED = [words.split() for words in re.findall(r"`controlplane ([^`]+)`", TEXT)]


@pytest.mark.parametrize("words", [*CONSOLE, *NAMED], ids=" ".join)
def test_a_command_that_is_named_is_there(command: RunCommand, words: list[str]) -> None:
    """With its options."""
    assert command(*words, "--help").status == 0


def test_settings_that_are_shown_are_those_that_there_are() -> None:
    """Each option of the policy has its line, and the shown policies can be used."""
    for field in fields(SofaOptions):
        assert f"`slot_policy_options.{field.name}`" in TEXT
        assert f"{field.default:,}" in TEXT
    for words in CONSOLE:
        given = [after for before, after in pairwise(words) if before == "--policy"]
        policy = parse_settings("--policy", ClusterPolicy(), given)
        if given:
            assert policy.slot_policy == SofaPolicy.name
            SofaPolicy().check_options(policy.slot_policy_options)
    names = set(re.findall(r"^\| [^|]+ \| [^|]+ \| `(\w+)[`=]", TEXT, re.MULTILINE))
    assert names
    assert names <= {field.name for field in fields(ClusterPolicy)}
