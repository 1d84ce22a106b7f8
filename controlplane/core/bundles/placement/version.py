"""The filter that keeps the nodes with the latest version, for rolling upgrades (Pulsar's BrokerVersionFilter)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key, lru_cache
from typing import Final, NamedTuple

from controlplane.core.bundles.placement.context import NodeFacts
from controlplane.core.bundles.placement.contract import BundleToPlace, Dropped, Filtering

_NUMBER: Final = r"0|[1-9][0-9]*"
_PRE_RELEASE: Final = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-({_PRE_RELEASE}(?:\.{_PRE_RELEASE})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_GREATEST_NUMBER: Final = 2**31 - 1
_INTEGER: Final = re.compile(r"-?[0-9]+")


class Version(NamedTuple):
    """A semantic version.

    Attributes:
        numbers: major, minor, patch.
        pre_release: its identifiers, for example ``("rc", "1")``; none for a release.
        build: the identifiers of its build; they count only where the latest version is looked for.
    """

    numbers: tuple[int, int, int]
    pre_release: tuple[str, ...]
    build: tuple[str, ...]


@lru_cache(maxsize=4_096)
def parse_version(text: str) -> Version | None:
    """The version that a text stands for; None if it is not a semantic version."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    major, minor, patch = (int(match[group]) for group in (1, 2, 3))
    if max(major, minor, patch) > _GREATEST_NUMBER:
        return None
    pre_release, build = (tuple(match[group].split(".")) if match[group] else () for group in (4, 5))
    return Version((major, minor, patch), pre_release, build)


def compare_releases(first: Version, second: Version) -> int:
    """Negative, zero or positive as the first version is older, equal or newer; builds do not count."""
    if first.numbers != second.numbers:
        return 1 if first.numbers > second.numbers else -1
    if not first.pre_release or not second.pre_release:
        return len(second.pre_release) - len(first.pre_release)
    return _compare_identifiers(first.pre_release, second.pre_release)


def compare_builds(first: Version, second: Version) -> int:
    """As :func:`compare_releases`; between equal ones a build is newer than none, and builds compare as texts."""
    release = compare_releases(first, second)
    if release or not (first.build or second.build):
        return release
    if not first.build or not second.build:
        return len(first.build) - len(second.build)
    return _compare_identifiers(first.build, second.build)


def _compare_identifiers(first: Sequence[str], second: Sequence[str]) -> int:
    for mine, theirs in zip(first, second, strict=False):
        if _is_number(mine) and _is_number(theirs):
            # In 32 bits, as in Java: of numbers far apart with different signs the greater one counts as older.
            difference = (int(mine) - int(theirs) + 2**31) % 2**32 - 2**31
        else:
            difference = (mine > theirs) - (mine < theirs)
        if difference:
            return difference
    return len(first) - len(second)


def _is_number(identifier: str) -> bool:
    """Whether Java reads it as a number of 32 bits with sign: ``-5`` in ``1.0.0--5`` is one."""
    return _INTEGER.fullmatch(identifier) is not None and -(2**31) <= int(identifier) <= _GREATEST_NUMBER


@dataclass(frozen=True, slots=True)
class VersionFilter:
    """Keep the nodes with the latest version among the candidates.

    The filter fails if a candidate's version is missing or is not a semantic one.
    """

    name: str = "version"

    def keep(self, bundle: BundleToPlace, candidates: Sequence[str], context: NodeFacts) -> Filtering:  # noqa: ARG002
        """The nodes with the latest version; builds of one version are equal."""
        versions: dict[str, Version] = {}
        for node_id in candidates:
            text = context.version(node_id)
            version = parse_version(text or "")
            if version is None:
                failure = f"node {node_id} has version {text!r}, which is not a semantic version"
                return Filtering(self.name, tuple(candidates), failure=failure)
            versions[node_id] = version
        if not versions:
            return Filtering(self.name, (), failure="there is no node to compare versions of")
        latest_node = max(versions, key=lambda node_id: cmp_to_key(compare_builds)(versions[node_id]))
        latest = versions[latest_node]
        kept: list[str] = []
        dropped: list[Dropped] = []
        for node_id, version in versions.items():
            if compare_releases(version, latest) == 0:
                kept.append(node_id)
            else:
                dropped.append(Dropped(node_id, context.version(node_id) or "", context.version(latest_node) or ""))
        return Filtering(self.name, tuple(kept), tuple(dropped))
