"""Bundles and their orders in texts for operators: ``kv/0x00000000_0x40000000,orders``.

A list of bundles has commas. A part whose last name is a range, like ``kv/0x00000000_0x40000000``, is a bundle's id.
Any other part is the name of a namespace, and stands for all of its bundles.
"""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.image import BundlesImage
from controlplane.core.bundles.names import check_namespace_name, namespace_of, range_of
from controlplane.core.bundles.orders import BY_NUMBER, BY_POSITIONS, BundleOrder, BundleOrderKind
from controlplane.core.bundles.ranges import HashRange, range_of_name
from controlplane.core.operations.answers import some_of
from controlplane.core.operations.slot_numbers import counted
from controlplane.core.values.identifiers import NamespaceName
from controlplane.errors import ConfigurationError

_EXAMPLE: Final = "bundle ids as in kv/0x00000000_0x40000000, or the name of a namespace for all of its bundles"


class _Listed(NamedTuple):
    """The parts of a list: ids of bundles, and namespaces that stand for all of theirs."""

    bundle_ids: frozenset[str]
    namespaces: frozenset[NamespaceName]


def check_bundles(text: str) -> None:
    """Check that the text is a list of bundles that some cluster could have.

    Raises:
        ConfigurationError: a part of it is empty or malformed.
    """
    _listed(text)


def listed_bundles(image: BundlesImage, text: str) -> tuple[Bundle, ...]:
    """The bundles of a list, by bundle id and without repetition.

    Raises:
        ConfigurationError: the text is malformed, or one of the bundles or namespaces does not exist. The message says
            which ones there are.
    """
    listed = _listed(text)
    for name in sorted(listed.namespaces):
        require_namespace(image, name)
    for bundle_id in sorted(listed.bundle_ids):
        if bundle_id not in image.by_id:
            raise ConfigurationError(_unknown_bundle(image, bundle_id))
    of_namespaces = (each for name in listed.namespaces for each in bundles_of(image, name))
    ids = {*listed.bundle_ids, *(bundle.bundle_id for bundle in of_namespaces)}
    return tuple(image.by_id[bundle_id] for bundle_id in sorted(ids))


def orderable_bundles(image: BundlesImage, text: str) -> tuple[Bundle, ...]:
    """The bundles of a list, each of which can be given an order.

    Raises:
        ConfigurationError: as for :func:`listed_bundles`; or a namespace is being deleted, or an order stands.
    """
    found = listed_bundles(image, text)
    for name in sorted({bundle.namespace for bundle in found}):
        if image.namespaces[name].is_ending:
            raise ConfigurationError(f"namespace {name!r} is being deleted: its bundles take no orders any more")
    for bundle in found:
        standing = image.orders.get(bundle.bundle_id)
        if standing is not None:
            ordered = f"bundle {bundle.bundle_id!r} is ordered already: {order_text(standing)}"
            raise ConfigurationError(f"{ordered}; it takes another order when that one has ended")
    return found


def bundles_of(image: BundlesImage, name: NamespaceName) -> Iterator[Bundle]:
    """The bundles of a namespace, by bundle id."""
    return (bundle for bundle in image.by_id.values() if bundle.namespace == name)


def require_namespace(image: BundlesImage, name: NamespaceName) -> None:
    """Check that there is a namespace of this name.

    Raises:
        ConfigurationError: there is none. The message says which ones there are.
    """
    if name not in image.namespaces:
        hint = "; a bundle is written with its namespace, as in NAMESPACE/RANGE" if name.startswith("0x") else ""
        raise ConfigurationError(f"there is no namespace {name!r}; known are {some_of(image.namespaces)}{hint}")


def named_bundles(bundle_ids: Collection[str]) -> str:
    """Bundles as the beginning of a sentence: ``bundle 'kv/…' is``, ``2 bundles (kv/…, kv/…) are``."""
    if len(bundle_ids) == 1:
        (bundle_id,) = bundle_ids
        return f"bundle {bundle_id!r} is"
    return f"{counted(len(bundle_ids), 'bundle')} ({some_of(bundle_ids)}) are"


def positions_text(positions: Collection[int]) -> str:
    """Hashes as the names of ranges have them."""
    return ", ".join(f"0x{position:08x}" for position in positions)


def split_text(order: BundleOrder) -> str:
    """How a bundle is to be split: ``into 2 parts``, ``at 0x40000000``, ``by topic_count_equally_divide``."""
    if order.split_by == BY_NUMBER:
        return f"into {order.numbers[0]} parts"
    return f"at {positions_text(order.numbers)}" if order.split_by == BY_POSITIONS else f"by {order.split_by}"


def order_text(order: BundleOrder) -> str:
    """An order as a short text, for example ``transfer to n2``."""
    what: str = order.kind.value
    if order.kind is BundleOrderKind.TRANSFER:
        return f"{what} to {order.destination}"
    return f"{what} {split_text(order)}" if order.kind is BundleOrderKind.SPLIT else what


def _listed(text: str) -> _Listed:
    bundle_ids, namespaces = set(), set()
    for part in (each.strip() for each in text.split(",")):
        try:
            if _names_a_range(part):
                check_namespace_name(namespace_of(part))
                range_of_name(range_of(part))
                bundle_ids.add(part)
            else:
                check_namespace_name(part)
                namespaces.add(part)
        except ConfigurationError as error:
            raise ConfigurationError(f"bundles {text!r:.160}: write {_EXAMPLE}; {error}") from error
    return _Listed(frozenset(bundle_ids), frozenset(namespaces))


def _names_a_range(part: str) -> bool:
    lower, underscore, _ = range_of(part).partition("_")
    return "/" in part and bool(underscore) and lower.startswith("0x")


def _unknown_bundle(image: BundlesImage, bundle_id: str) -> str:
    """Why there is no such bundle: no such namespace, or other bundles divide its range."""
    name, wanted = namespace_of(bundle_id), range_of_name(range_of(bundle_id))
    require_namespace(image, name)
    holders = [each.bundle_id for each in bundles_of(image, name) if _overlap(each.hash_range, wanted)]
    return f"there is no bundle {bundle_id!r}: its hashes are in {some_of(holders)}"


def _overlap(one: HashRange, other: HashRange) -> bool:
    return one.lower < other.upper and other.lower < one.upper
