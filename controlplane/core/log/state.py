"""The state: the fold of the decision log and nothing else."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from controlplane.core.bundles.image import BundlesImage
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.intents.image import IntentsImage
from controlplane.core.membership.image import MembershipImage
from controlplane.core.slots.image import SlotsImage
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import ControllerId, Epoch, Seq, Term
from controlplane.core.values.image import Image

_NO_TERM: Final = Term(0)
_NO_SEQ: Final = Seq(0)
_NO_EPOCH: Final = Epoch(0)


@dataclass(frozen=True, slots=True)
class State:
    """The state after decision ``seq``. Only ``apply`` changes it.

    The numbers are those of the log. Everything else is in the images of the subjects.

    Attributes:
        log_id: random name of this log; empty before the first decision.
        term: term of the last decision.
        leader: the controller that opened the term.
        seq: seq of the last decision.
        epoch: epoch of the routing table.
        decided_at_ms: log time of the last decision.
        last_digest: digest of the last decision, which the next one repeats.
        positions: next offset per input partition, keyed as ``heartbeats[3]``.
        cluster, membership, slots, bundles, intents: the images.
    """

    log_id: str = ""
    term: Term = _NO_TERM
    leader: ControllerId = ""
    seq: Seq = _NO_SEQ
    epoch: Epoch = _NO_EPOCH
    decided_at_ms: int = 0
    last_digest: str = ""
    positions: Mapping[str, int] = field(default_factory=dict)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    membership: MembershipImage = field(default_factory=MembershipImage)
    slots: SlotsImage = field(default_factory=SlotsImage)
    bundles: BundlesImage = field(default_factory=BundlesImage)
    intents: IntentsImage = field(default_factory=IntentsImage)

    def digest(self) -> str:
        """The digest of the whole state, 64 hexadecimal digits. The cost does not depend on the number of entries."""
        return hashlib.sha256(self.summary()).hexdigest()

    def summary(self) -> bytes:
        """The input of the digest: canonical bytes of every field by name, with the summaries of images in their place.

        ``last_digest`` is left out, because that decision already contains the digest of this state.
        """
        values = ((prefix, getattr(self, name)) for prefix, name in _SUMMARIZED)
        parts = [
            prefix + (value.summary if isinstance(value, Image) else canonical_bytes(value)) for prefix, value in values
        ]
        return b"{" + b",".join(parts) + b"}"


_NAMES: Final = sorted({each.name for each in fields(State)} - {"last_digest"})
_SUMMARIZED: Final = tuple((canonical_bytes(name) + b":", name) for name in _NAMES)
"""Key and field of each part of a summary, in the order of keys."""


def all_entries(state: State) -> Iterator[tuple[str, Entries[Any, Any]]]:
    """Every keyed collection of a state, with the path of its field, for example ``membership.nodes``."""
    for image in fields(state):
        value = getattr(state, image.name)
        if isinstance(value, Image):
            for each in fields(value):
                entries = getattr(value, each.name)
                if isinstance(entries, Entries):
                    yield f"{image.name}.{each.name}", entries


def wrong_digests(state: State) -> list[str]:
    """The paths of the collections whose kept digest differs from the one computed over all their entries."""
    return [path for path, entries in all_entries(state) if entries.computed_digest() != entries.digest]
