"""Rows of bundles that are handed off: each follows by Pulsar's rule, or is refused before it is written."""

import pytest

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_channel.live_rows import (
    assigning,
    children_of,
    created,
    freed,
    opened,
    record_of,
    releasing,
    splitting,
    taken,
)
from controlplane.core.bundles.ownership_channel.record import GREATEST_VERSION, LEAST_VERSION
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.values.identifiers import Epoch
from controlplane.errors import InvariantViolationError

FREE = created(Bundle("kv", 0, 1 << 30, None), Epoch(3))
OWNED = taken(FREE, "n1", Epoch(4))


def test_a_transfer_names_source_and_destination_as_pulsar_does() -> None:
    """The record of each row is that of Pulsar's channel."""
    released = releasing(OWNED, "n2", Epoch(5))
    assigned = assigning(released, "n2", Epoch(6))
    served = opened(assigned, Epoch(7))
    named = [(each.destination, each.source) for each in map(record_of, (OWNED, released, assigned, served))]
    assert named == [("n1", None), ("n2", "n1"), ("n2", "n1"), ("n2", "n1")]
    assert (served.owner, served.owner_epoch, served.version) == ("n2", 7, OWNED.version + 3)


def test_a_step_that_does_not_follow_is_refused() -> None:
    """A leader that wrote it would let two nodes serve, or none."""
    for step in (
        lambda: assigning(OWNED, "n2", Epoch(5)),
        lambda: freed(releasing(OWNED, "n2", Epoch(5)), Epoch(6)),
        lambda: releasing(OWNED, "n1", Epoch(5)),
        lambda: children_of(OWNED, (1,), Epoch(5)),
    ):
        with pytest.raises(InvariantViolationError, match="cannot go from"):
            step()


def test_versions_wrap() -> None:
    """The least 64-bit number follows the greatest one."""
    last = Bundle("kv", 0, 1 << 30, "n1", state=OwnershipState.OWNED, version=GREATEST_VERSION)
    assert releasing(last, None, Epoch(5)).version == LEAST_VERSION


def test_parts_keep_owner_and_token_and_name_the_whole() -> None:
    """Nothing is interrupted, and the lineage is in the rows."""
    parts = children_of(
        splitting(OWNED, ("0x00000000_0x00000007", "0x00000007_0x40000000"), "", Epoch(5)), (7,), Epoch(6)
    )
    assert [(each.lower, each.upper, each.owner, each.owner_epoch, each.parent) for each in parts] == [
        (0, 7, "n1", 4, "0x00000000_0x40000000"),
        (7, 1 << 30, "n1", 4, "0x00000000_0x40000000"),
    ]
