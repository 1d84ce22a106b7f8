"""Users' slot policies from files: what is taken, and what is refused with a sentence that helps."""

from pathlib import Path

import pytest

from controlplane.bootstrap.slot_policies import load_slot_policies
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.policies import BUILT_IN_POLICIES, check_slot_policy
from controlplane.errors import ConfigurationError
from tests.helpers.readme import ROOT

EXAMPLE = ROOT / "examples" / "slot_policies" / "zoned_rendezvous.py"
IMPORT = "from controlplane.core.slots.policy_contract import SlotPolicy"
POLICY = """
from dataclasses import dataclass

from controlplane.core.slots.policy_contract import SlotPolicy

@dataclass(frozen=True, slots=True)
class Mine(SlotPolicy):
    name: str = "{name}"
    interval_ms: int | None = {interval_ms}

    def check_options(self, options):
        {check}

    def plan(self, request):
        return None
"""


def written(folder: Path, text: str, file_name: str = "mine.py") -> Path:
    """A file with this text."""
    path = folder / file_name
    path.write_text(text, encoding="utf-8")
    return path


def policy_text(name: str = "mine", interval_ms: object = None, check: str = "pass", end: str = "(Mine(),)") -> str:
    """A whole file with one policy."""
    return POLICY.format(name=name, interval_ms=interval_ms, check=check) + f"SLOT_POLICIES = {end}\n"


def test_files_stand_beside_the_built_in_policies(tmp_path: Path) -> None:
    """Several files, also of one name in two folders, and several policies in one."""
    (tmp_path / "other").mkdir()
    two = written(tmp_path, policy_text(end="[Mine('a'), Mine('b', 500)]"))
    one = written(tmp_path / "other", policy_text())
    policies = load_slot_policies([two, one, EXAMPLE])
    assert set(policies) == {*BUILT_IN_POLICIES, "a", "b", "mine", "zoned-rendezvous"}
    assert policies["b"].interval_ms == 500
    assert type(policies["a"]) is not type(policies["mine"])


def test_without_files_there_are_the_built_in_policies() -> None:
    """Nothing else is looked for anywhere."""
    assert load_slot_policies([]) == BUILT_IN_POLICIES


REFUSED = {
    "no policies": ("x = 1\n", "it has no slot policies; end it with SLOT_POLICIES = (MyPolicy(),)"),
    "an empty list": (policy_text(end="()"), "it has no slot policies"),
    "a policy without brackets": (policy_text(end="Mine()"), "it has no slot policies"),
    "a class": (
        policy_text(end="(Mine,)"),
        "SLOT_POLICIES[0] is not a slot policy: it is the class Mine; write Mine()",
    ),
    "another object": (policy_text(end="(Mine(), 3)"), "SLOT_POLICIES[1] is not a slot policy: int does not inherit"),
    "no base class": (
        'class Mine:\n    name = "mine"\nSLOT_POLICIES = (Mine(),)\n',
        "Mine does not inherit controlplane.slot_policies.SlotPolicy; write class Mine(SlotPolicy)",
    ),
    "no methods": (
        f"{IMPORT}\nclass Mine(SlotPolicy):\n    name = 'mine'\nSLOT_POLICIES = (Mine(),)\n",
        "line 4: TypeError: Can't instantiate abstract class Mine",
    ),
    "no name": (policy_text().replace("name: str", "called: str"), "name is None, not a text"),
    "an empty name": (policy_text(name=""), "name is '', not a text"),
    "no interval": (policy_text(interval_ms=0), "interval_ms has to be None or a positive number of milliseconds"),
    "a built-in name": (policy_text(name="minimal"), "the name 'minimal' is that of a built-in policy already"),
    "a name twice": (policy_text(end="(Mine(), Mine())"), "the name 'mine' is that of one in "),
    "an error": ("x = 1\ny = x / 0\n", "mine.py, line 2: ZeroDivisionError: division by zero"),
    "no Python": ("x = (\n", "mine.py: SyntaxError: '(' was never closed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_holds_no_policy_is_refused(case: str, tmp_path: Path) -> None:
    """Named at the start with its file and what was expected, not found by a leader in the night."""
    text, sentence = REFUSED[case]
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as refused:
        load_slot_policies([path])
    assert sentence in str(refused.value)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize("name", ["nowhere.py", "folder.py", "policy.txt"])
def test_what_is_no_python_file_is_refused(name: str, tmp_path: Path) -> None:
    """A mistyped path is one sentence."""
    (tmp_path / "folder.py").mkdir()
    written(tmp_path, policy_text(), "policy.txt")
    with pytest.raises(ConfigurationError, match="there is no such Python file"):
        load_slot_policies([tmp_path / name])


def test_a_check_of_options_that_fails_is_a_refusal(tmp_path: Path) -> None:
    """The user's defect is named as his, not as ours."""
    policies = load_slot_policies([written(tmp_path, policy_text(check="options['seed']"))])
    with pytest.raises(ConfigurationError, match="slot policy 'mine' failed to check its options: KeyError"):
        check_slot_policy(policies, ClusterPolicy(slot_policy="mine"))
