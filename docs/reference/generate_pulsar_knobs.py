"""Draw ``pulsar-knobs.md`` from the settings classes of the rules: ``python docs/reference/generate_pulsar_knobs.py``.

A test compares the page with what this script would write. Names, values and readers come from the code, meanings from
the attributes in the docstrings of the settings classes.
"""

import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("pulsar-knobs.md")
sys.path.insert(0, str(ROOT))

from controlplane.core.bundles.profiles.composition import REGISTRY, compose  # noqa: E402 - as above
from controlplane.core.bundles.profiles.values import (  # noqa: E402 - as above
    CONTROLPLANE,
    KNOBS_WITHOUT_EFFECT,
    PROFILES,
    UNREAD_KNOBS,
)
from controlplane.core.bundles.settings.knobs import knobs_of  # noqa: E402 - the checkout is on the path only now
from docs.reference.pulsar_settings import Use, Values, composed, knob_uses, use_of  # noqa: E402 - as above

_SIMPLE: Final = "Of the simple load manager, which is not offered."
_NETWORK: Final = (
    "How a node of Pulsar measures its network. Here each node measures itself and reports usage and limit."
)
WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "loadBalancerPlacementStrategy": _SIMPLE,
    "loadBalancerBrokerUnderloadedThresholdPercentage": _SIMPLE,
    "loadBalancerBrokerComfortLoadLevelPercentage": _SIMPLE,
    "loadBalancerOverrideBrokerNics": _NETWORK,
    "loadBalancerOverrideBrokerNicSpeedGbps": _NETWORK,
}
"""Why each of ``KNOBS_WITHOUT_EFFECT`` has no effect."""

_LEASES: Final = "There is no metadata store. `silence_limit_ms` of the policy says when a silent node is fenced."
_CHANNEL: Final = "Nothing executes the ownership channel yet."
_POLICY: Final = (
    "Live namespaces are created by the policy of the cluster: its `bundles_per_namespace` is 4 by default."
)
UNREAD: Final[Mapping[str, str]] = {
    "brokerShutdownTimeoutMs": "How long a node drains is up to its program and to who ends it.",
    "defaultNumberOfNamespaceBundles": _POLICY,
    "enableNonPersistentTopics": "Each node reports what it serves; the isolation filter reads the reports.",
    "enablePersistentTopics": "Each node reports what it serves; the isolation filter reads the reports.",
    "loadBalancerServiceUnitStateMaxConcurrentOverrides": _CHANNEL,
    "loadBalancerServiceUnitTableViewSyncer": "Ownership is in the log alone. Another value than `None` is refused.",
    "loadBalancerSheddingGracePeriodMinutes": (
        "A caller of the core says which bundles moved recently. The pipeline has its own setting, `grace_period_ms`."
    ),
    "metadataStoreOperationTimeoutSeconds": _LEASES,
    "metadataStoreSessionTimeoutMillis": _LEASES,
    "namespaceBundleUnloadingTimeoutMs": "Nothing executes unloads yet.",
    "topicBundleAssignmentStrategy": "There is one assignment. Another class is refused.",
}
"""Why no rule reads each of ``UNREAD_KNOBS``."""

NOT_HERE: Final[Mapping[str, str]] = {
    "zooKeeperSessionTimeoutMillis": "Pulsar 2's name of `metadataStoreSessionTimeoutMillis`.",
    "zooKeeperOperationTimeoutSeconds": "Pulsar 2's name of `metadataStoreOperationTimeoutSeconds`.",
    "zookeeperSessionExpiredPolicy": (
        "There is no session with a store. A node that is fenced stops serving and joins again."
    ),
}
"""Knobs of Pulsar that are refused as unknown, and why."""

_HEAD: Final = """\
# Pulsar's knobs

<!-- Drawn by docs/reference/generate_pulsar_knobs.py from controlplane/core/bundles/: change that, not this page. -->

A knob is a setting of Pulsar's `broker.conf` that its load managers read. A profile gives every knob a value and sets
every switch. How to choose a profile, and what of this runs today, is described in [come from
Pulsar](../how-to/come-from-pulsar.md).

A value without a profile's name is that of every profile, our own policy `controlplane` included. Names of classes are
written without their packages; both forms can be given. A node is a broker of Pulsar.

## Profiles

| profile | what it decides like | manager | shedder | placement |
|---|---|---|---|---|
"""
_KNOBS: Final = """
## Knobs

The third column says which rule reads the knob. A file is one of `controlplane/core/bundles/`, with a rule that a
configuration of Pulsar cannot name. Few of these rules are executed yet: see [what runs and what only
decides](../how-to/come-from-pulsar.md#what-runs-and-what-only-decides).

| knob | value | read by | meaning |
|---|---|---|---|
"""
_SWITCHES: Final = """
## Switches

Settings that are no knobs of Pulsar: what one version does and another does not. Profiles set them, and they cannot be
overridden one by one. A quirk is behaviour that looks unintended; some have a letter.

| switch | under `controlplane` | otherwise | meaning |
|---|---|---|---|
"""
_UNREAD: Final = """
## Knobs that no rule reads

They are accepted and checked, and appear above. No decision depends on them.

| knob | reason |
|---|---|
"""
_WITHOUT_EFFECT: Final = """
## Knobs without effect

They are accepted with any value.

| knob | Pulsar's default | reason |
|---|---|---|
"""
_NOT_HERE: Final = """
## Not here

They are refused as unknown, like every other name that this page does not show.

| knob | reason |
|---|---|
"""


def page() -> str:
    """The whole page."""
    uses = knob_uses()
    return "".join(
        (
            _HEAD,
            *_profile_rows(),
            _KNOBS,
            *(_knob_row(knob, uses[knob]) for knob in sorted(uses, key=str.lower)),
            _SWITCHES,
            *_switch_rows(),
            _UNREAD,
            *(f"| `{knob}` | {UNREAD[knob]} |\n" for knob in sorted(UNREAD_KNOBS)),
            _WITHOUT_EFFECT,
            *(f"| `{knob}` | {_shown(KNOBS_WITHOUT_EFFECT[knob])} | {why} |\n" for knob, why in WITHOUT_EFFECT.items()),
            _NOT_HERE,
            *(f"| `{knob}` | {reason} |\n" for knob, reason in NOT_HERE.items()),
        )
    )


def _profile_rows() -> Iterator[str]:
    for profile in PROFILES.values():
        chosen = compose(profile.name)
        rules = (chosen.manager.value.rpartition(".")[2], chosen.shedder_rule.short_name)
        cells = (*rules, chosen.placement_rule.short_name)
        yield f"| `{profile.name}` | {profile.description} | {' | '.join(f'`{each}`' for each in cells)} |\n"
    for profile in PROFILES.values():
        if profile.assumed:
            knobs = ", ".join(f"`{knob}`" for knob in profile.assumed)
            text = f"The numbers of `{profile.name}` for {knobs} are assumed, because Pulsar's are not published."
            yield f"\n{textwrap.fill(text, 120, break_on_hyphens=False)}\n"


def _knob_row(knob: str, uses: list[Use]) -> str:
    """A row: its meanings are those of all its fields, each once."""
    first = uses[0].values
    lines: dict[str, list[str]] = defaultdict(list)
    for use in uses:
        own = "" if use.values == first else f" Here the value is {_by_profile(use.values)}."
        lines[use.meaning + own].extend(use.readers)
    readers = list(dict.fromkeys(reader for use in uses for reader in use.readers))
    if len(lines) == 1:
        meaning = next(iter(lines))
    else:
        meaning = "<br>".join(f"{_code(names)}: {meaning}" for meaning, names in lines.items())
    return f"| `{knob}` | {_by_profile(first)} | {_code(readers) or 'nothing yet'} | {meaning} |\n"


def _switch_rows() -> Iterator[str]:
    for part in REGISTRY.parts:
        knobs = {name for _, name in knobs_of(part.settings)}
        for each in fields(part.settings):
            if each.name in knobs or is_dataclass(getattr(composed(CONTROLPLANE)[part.settings], each.name)):
                continue
            use = use_of(part.settings, each.name)
            named = f"`{part.settings.__name__}.{each.name}`"
            others = _by_value({name: value for name, value in use.values.items() if value != use.values[CONTROLPLANE]})
            yield f"| {named} | {_shown(use.values[CONTROLPLANE])} | {others or 'the same'} | {use.meaning} |\n"


def _by_profile(values: Values) -> str:
    """The value of our own policy, then those of the profiles that differ."""
    others = _by_value({name: value for name, value in values.items() if value != values[CONTROLPLANE]})
    return f"{_shown(values[CONTROLPLANE])}; {others}" if others else _shown(values[CONTROLPLANE])


def _by_value(values: Values) -> str:
    names: dict[str, list[str]] = defaultdict(list)
    for name, value in values.items():
        names[_shown(value)].append(name)
    return "; ".join(f"{value} under {_profiles(these)}" for value, these in names.items())


def _profiles(names: list[str]) -> str:
    return "every profile of Pulsar" if {*names, CONTROLPLANE} == PROFILES.keys() else _code(names)


def _shown(value: object) -> str:
    """A value as ``broker.conf`` has it."""
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if value is None or value in ((), frozenset()):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value.rpartition('.')[2] if isinstance(value, str) else value}`"


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
