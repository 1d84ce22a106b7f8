"""The values whose bytes are frozen, and the damaged records whose refusal is.

Each record has a plain case and one that fills every field and every branch. Add cases; a case of a released schema
version never changes. A module holds the samples of one subject of the core; generated files follow their order in
``SAMPLES``.
"""

from typing import TypeVar

from tests.golden.samples import bundles, cluster, intents, log, membership, routing, slots, values
from tests.golden.samples.damaged_records import Damaged, damaged
from tests.golden.samples.sample import Sample

__all__ = ["SAMPLES", "Damaged", "Sample", "damaged", "sample_of"]

T = TypeVar("T")

SAMPLES: tuple[Sample, ...] = (
    *membership.HEARTBEATS,
    *bundles.LOAD_REPORTS,
    *membership.JOINS_AND_LEAVES,
    *membership.LATER_JOINS_AND_LEAVES,
    *intents.INTENTS,
    *log.DECISIONS,
    *cluster.ROWS,
    *slots.ROWS,
    *membership.ROWS,
    *bundles.ROWS,
    *routing.ROWS,
    *bundles.CANDIDATES,
    *log.SNAPSHOT_PARTS,
    *values.DEAD_LETTERS,
)


def sample_of(kind: type[T], name: str) -> T:
    """The value of the sample of that name, which is of this class."""
    (found,) = (each.value for each in SAMPLES if each.name == name and isinstance(each.value, kind))
    return found
