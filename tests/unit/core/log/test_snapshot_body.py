"""The body of a snapshot, made in pieces."""

import json
from dataclasses import dataclass, field, replace

import pytest

from controlplane.core.log.snapshots.body import pieces_of
from controlplane.core.log.state import State
from controlplane.core.membership.image import MembershipImage
from controlplane.core.values.canonical import canonical_bytes, later
from controlplane.core.values.entries import Entries


@dataclass(frozen=True, slots=True)
class LaterImage(MembershipImage):
    """An image to which a release has added entries."""

    added: Entries[str, str] = field(default_factory=Entries, metadata=later(since_level=2))


@pytest.mark.parametrize("added", [{}, {"n1": "something"}])
def test_later_entries_are_left_out_while_there_are_none(added: dict[str, str]) -> None:
    """Otherwise a release that does not know the field would refuse the snapshots of one that does."""
    state = replace(State(), membership=LaterImage(added=Entries(added)))
    body = b"".join(pieces_of(state))
    assert body == canonical_bytes(state)
    assert ("added" in json.loads(body)["membership"]) == bool(added)
