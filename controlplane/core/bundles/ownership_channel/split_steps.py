"""How an owner divides a bundle: its parts get owners, the namespace its new boundaries, and the bundle is deleted.

Every step can be repeated. A node that takes the split over from a dead one begins anew.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from controlplane.core.bundles.ownership_channel.record import FIRST_VERSION, OwnershipRecord, next_version
from controlplane.core.bundles.ownership_channel.table import Written
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import Boundaries, HashRange, namespace_and_range, range_of_name
from controlplane.errors import ConfigurationError

MAX_ATTEMPTS: Final = 7
RETRY_DELAY_MS: Final = 100


class SplitSteps(NamedTuple):
    """What the owner does, in this order.

    Attributes:
        children: the records of the parts that have none yet; to be published first, also if the division fails.
        failure: why the bundle cannot be divided; None if it can.
        boundaries: the namespace's new boundaries; None if they are written already, or if the division fails.
        deleted: the bundle's last record; None if the division fails.
    """

    children: tuple[Written, ...]
    failure: str | None
    boundaries: Boundaries | None
    deleted: Written | None


def split_steps(
    bundle_id: str,
    record: OwnershipRecord,
    records: Mapping[str, OwnershipRecord],
    boundaries: Boundaries,
    now_ms: int,
) -> SplitSteps:
    """The steps of a division.

    The bundle's owner gets all parts, whichever nodes the record names for them. A bundle that is no more while all its
    parts exist has been divided before: only its last record is left to be published.

    Args:
        bundle_id: the bundle.
        record: its record, in state *Splitting*; its source divides it.
        records: the table. A part that has a record already keeps it.
        boundaries: the namespace's boundaries now.
        now_ms: the owner's clock.

    Raises:
        ConfigurationError: the bundle's id does not end with the name of a range, or a child's name is not one.
    """
    namespace, bundle = namespace_and_range(bundle_id)
    parts = sorted(range_of_name(name) for name in record.children)
    owned = OwnershipRecord(OwnershipState.OWNED, record.source, None, FIRST_VERSION, now_ms)
    child_ids = (f"{namespace}/{part.name}" for part in parts)
    children = tuple(Written(child_id, owned) for child_id in child_ids if child_id not in records)
    divided = _split(bundle, parts, boundaries)
    if isinstance(divided, str):
        return SplitSteps(children, divided, None, None)
    last = OwnershipRecord(OwnershipState.DELETED, None, record.source, next_version(record), now_ms)
    new = None if divided == boundaries else divided
    return SplitSteps(children, None, new, Written(bundle_id, last))


def retry_delay_ms(attempts: int) -> int | None:
    """After how long to try again when another writer changed the boundaries first; None after the last attempt.

    Args:
        attempts: how often it was tried, at least 1.
    """
    return RETRY_DELAY_MS if attempts < MAX_ATTEMPTS else None


def _split(bundle: HashRange, parts: list[HashRange], boundaries: Boundaries) -> Boundaries | str:
    """The boundaries afterwards, which may be those of now, or why there are none."""
    if not boundaries.has(bundle):
        missing = [part.name for part in parts if not boundaries.has(part)]
        if missing or not parts:
            return f"the namespace has neither bundle {bundle.name} nor all of its parts"
        return boundaries
    bounds = [bundle.lower, *(part.upper for part in parts)]
    if parts != [HashRange(*each) for each in pairwise(bounds)] or bounds[-1] != bundle.upper or not parts[1:]:
        return f"{', '.join(part.name for part in parts) or 'an empty list'} does not divide bundle {bundle.name}"
    try:
        split = boundaries.split(bundle, len(parts), bounds[1:-1])
    except ConfigurationError as error:
        return str(error)
    return boundaries if split is None else split.boundaries
