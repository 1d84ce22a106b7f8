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

from controlplane.core.bundles.load.resource_usage import ResourceWeights  # noqa: E402 - the checkout is on the path
from controlplane.core.bundles.profiles.composition import REGISTRY, compose  # noqa: E402 - as above
from controlplane.core.bundles.profiles.values import (  # noqa: E402 - as above
    CONTROLPLANE,
    KNOBS_WITHOUT_EFFECT,
    PROFILES,
    UNREAD_KNOBS,
)
from controlplane.core.bundles.settings.knobs import knobs_of, ranges_of_knobs  # noqa: E402 - as above
from controlplane.core.bundles.shedding.threshold import ThresholdSettings  # noqa: E402 - as above
from controlplane.core.bundles.splitting.limits import SplitSettings  # noqa: E402 - as above
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
    "zooKeeperSessionTimeoutMillis": "Pulsar 2's name of `metadataStoreSessionTimeoutMillis`. There is no ZooKeeper.",
    "zooKeeperOperationTimeoutSeconds": (
        "Pulsar 2's name of `metadataStoreOperationTimeoutSeconds`. There is no ZooKeeper."
    ),
    "zookeeperSessionExpiredPolicy": (
        "There is no session with a store. A node that is fenced stops serving and joins again."
    ),
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

PIPELINE: Final[Mapping[str, str]] = {
    "loadBalancerSheddingIntervalMinutes": "evaluation_interval_ms",
    "loadBalancerSplitIntervalMinutes": "evaluation_interval_ms",
    "loadBalancerSheddingGracePeriodMinutes": "grace_period_ms",
    "loadBalancerBrokerLoadDataTTLInSeconds": "report_lifetime_ms",
    **{
        knob: f"{part}.{field}"
        for part, kind in (("split", SplitSettings), ("shed", ThresholdSettings), ("shed.weights", ResourceWeights))
        for knob, field in knobs_of(kind)
        if knob != "loadBalancerAutoBundleSplitEnabled"
    },
}
"""By knob, the setting of the pipeline that has its meaning. The pipeline always looks for splits."""

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

*Allowed* is what our own policy accepts; it refuses other values by name. A profile of Pulsar accepts them where a rule
can calculate with them, as Pulsar does, and `controlplane profiles show` marks them.

*Read by* names the rules that read the knob. A file is one of `controlplane/core/bundles/`, with a rule that a
configuration of Pulsar cannot name.

*Executed today by* says whether anything that runs decides by it. Nothing that runs reads a profile or a file of knobs.
The pipeline has settings of its own, named there, with the numbers of Pulsar 4.2: `controlplane pipeline run --rule
NAME=VALUE`. It only writes candidates, on which nothing acts: see [what runs and what only
decides](../how-to/come-from-pulsar.md#what-runs-and-what-only-decides).

| knob | value | allowed | read by | executed today by | meaning |
|---|---|---|---|---|---|
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

They are accepted with any value. Every other name of a `broker.conf` is no knob of these rules: `controlplane profiles
show --set FILE` skips its line and names it, and `--set NAME=VALUE` refuses it.

| knob | Pulsar's default | reason |
|---|---|---|
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
            text = f"The numbers of `{profile.name}` for {knobs} are assumed: {profile.assumption}"
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
    cells = (
        f"`{knob}`",
        _by_profile(first),
        _allowed(uses[0]),
        _code(readers) or "nothing yet",
        _executed(knob),
        meaning,
    )
    return f"| {' | '.join(cells)} |\n"


def _allowed(use: Use) -> str:
    """What our own policy accepts for the knob of a field; the fields of a knob have the same range."""
    allowed = {name: range_ for name, range_, _ in ranges_of_knobs(use.settings)}[dict(_names(use.settings))[use.field]]
    if allowed is not None:
        return str(allowed)
    value = use.values[CONTROLPLANE]
    if isinstance(value, bool):
        return "`true`, `false`"
    return "a name" if isinstance(value, str) else "names"


def _names(settings: type) -> Iterator[tuple[str, str]]:
    return ((field, knob) for knob, field in knobs_of(settings))


def _executed(knob: str) -> str:
    return f"pipeline, as `{PIPELINE[knob]}`" if knob in PIPELINE else "nothing"


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
