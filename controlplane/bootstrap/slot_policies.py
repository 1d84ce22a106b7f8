"""Loads slot policies from users' own files, beside the built-in ones."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from controlplane.bootstrap.user_files import run_file
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies, SlotPolicy
from controlplane.errors import ConfigurationError

ATTRIBUTE: Final = "SLOT_POLICIES"
"""The name of a file's tuple of policies: objects whose classes inherit ``SlotPolicy``."""


def load_slot_policies(paths: Iterable[Path]) -> SlotPolicies:
    """The built-in policies and those of the files, by name.

    Each file is run once, as a module of its own, in this process: trust it as you trust this package.

    Raises:
        ConfigurationError: a file cannot be run, has no ``SLOT_POLICIES``, lists something other than slot policies, or
            uses a name that is taken.
    """
    policies = dict(BUILT_IN_POLICIES)
    origins = dict.fromkeys(policies, "a built-in policy")
    for path in paths:
        for policy in _policies_of(path):
            if policy.name in policies:
                raise ConfigurationError(
                    f"{path}: the name {policy.name!r} is that of {origins[policy.name]} already; use another"
                )
            policies[policy.name] = policy
            origins[policy.name] = f"one in {path}"
    return policies


def _policies_of(path: Path) -> Sequence[SlotPolicy]:
    listed = getattr(run_file(path, "slot_policy_file"), ATTRIBUTE, None)
    if not isinstance(listed, tuple | list) or not listed:
        raise ConfigurationError(f"{path}: it has no slot policies; end it with {ATTRIBUTE} = (MyPolicy(),)")
    for index, policy in enumerate(listed):
        problems = _problems(policy)
        if problems:
            raise ConfigurationError(f"{path}: {ATTRIBUTE}[{index}] is not a slot policy: {'; '.join(problems)}")
    return listed


def _problems(policy: object) -> list[str]:
    """The respects in which it is not a slot policy, found before a leader uses it; Python reports missing methods."""
    if isinstance(policy, type):
        return [f"it is the class {policy.__name__}; write {policy.__name__}()"]
    if not isinstance(policy, SlotPolicy):
        kind = type(policy).__name__
        return [f"{kind} does not inherit controlplane.slot_policies.SlotPolicy; write class {kind}(SlotPolicy)"]
    name, interval_ms = getattr(policy, "name", None), policy.interval_ms
    return [
        sentence
        for holds, sentence in (
            (isinstance(name, str) and name != "", f"name is {name!r}, not a text"),
            (
                interval_ms is None or (type(interval_ms) is int and interval_ms > 0),
                "interval_ms has to be None or a positive number of milliseconds",
            ),
        )
        if not holds
    ]
