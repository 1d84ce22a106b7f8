"""Recorded answers about hash ranges: boundaries, the range of a hash or of a topic, splits at positions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from controlplane.core.bundles.ownership_channel.record import is_blank
from controlplane.core.bundles.ranges import Boundaries, HashRange, bundle_hash, equal_boundaries
from controlplane.core.bundles.settings.manager_settings import NamespaceSettings
from controlplane.errors import ConfigurationError, UnroutableError
from tests.conformance.pulsar.settings import settings
from tests.conformance.pulsar.translation import Document

_NAMESPACE: Final = "t/n"
_LAST_HASH_HAS_NO_BUNDLE: Final = settings(NamespaceSettings, {}).last_hash_has_no_bundle


def _numbers(boundaries: Sequence[str]) -> Boundaries:
    return Boundaries(tuple(int(each, 16) for each in boundaries))


def _texts(boundaries: Boundaries) -> list[str]:
    return [f"0x{each:08x}" for each in boundaries.bounds]


def create_bundles(given: Document) -> object:
    """The boundaries of n bundles."""
    try:
        return _texts(equal_boundaries(given["n"]))
    except ConfigurationError:
        return {"error": "RestException"}


def full_name(topic: str) -> str:
    """The full name of a topic as Pulsar's TopicName completes it: kind in small letters, default tenant and namespace.

    Raises:
        ConfigurationError: the name is neither full nor one of both short forms, or its local part is blank.
    """
    kind, scheme, rest = topic.partition("://")
    if not scheme:
        kind, rest = "persistent", topic
        short = [part for part in topic.split("/") if part]
        if len(short) == 1:
            rest = f"public/default/{short[0]}"
    parts = rest.split("/", 3)
    if len(parts) not in (3, 4) or is_blank(parts[-1]):
        message = f"{topic!r} is not the name of a topic"
        raise ConfigurationError(message)
    return f"{kind.lower()}://{rest}"


def find_bundle(given: Document) -> object:
    """Hash and range of each topic; the first refused topic is the answer of the whole case."""
    boundaries = _numbers(given["boundaries"])
    try:
        return [
            [
                topic,
                bundle_hash(full),
                boundaries.range_of_topic(_NAMESPACE, full, last_hash_has_no_bundle=_LAST_HASH_HAS_NO_BUNDLE).name,
            ]
            for topic, full in ((each, full_name(each)) for each in given["topics"])
        ]
    except ConfigurationError:
        return {"error": "IllegalArgumentException"}
    except UnroutableError:
        return {"error": "IndexOutOfBoundsException"}


def bundle_for_hash(given: Document) -> object:
    """The range of each hash, or the error."""
    boundaries = _numbers(given["boundaries"])
    return [_range_of_hash(boundaries, hashed) for hashed in given["hashes"]]


def _range_of_hash(boundaries: Boundaries, hashed: int) -> str:
    try:
        return boundaries.range_of_hash(hashed, last_hash_has_no_bundle=_LAST_HASH_HAS_NO_BUNDLE).name
    except UnroutableError:
        return "error:IndexOutOfBoundsException"


def split_bundle(given: Document) -> object:
    """Boundaries and children after the split."""
    target = HashRange(*given["target"])
    answer: dict[str, object] = {"can_split": target.can_split}
    try:
        split = _numbers(given["boundaries"]).split(target, given["n"], given["positions"] or ())
    except ConfigurationError:
        return answer | {"error": "IllegalArgumentException"}
    if split is None:
        return answer | {"boundaries": None, "children": None}
    return answer | {"boundaries": _texts(split.boundaries), "children": [each.name for each in split.children]}


OPERATIONS: Final[Mapping[str, Callable[[Any], object]]] = {
    "create_bundles": create_bundles,
    "find_bundle": find_bundle,
    "bundle_for_hash": bundle_for_hash,
    "split_bundle": split_bundle,
}
