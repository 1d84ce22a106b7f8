"""Samples of the subject ``routing``: the marker of an epoch."""

from controlplane.core.routing.rows import EpochMarker
from controlplane.core.values.identifiers import Epoch, Seq, Term
from tests.golden.samples.sample import Sample

ROWS = (Sample("plain", EpochMarker(Term(3), Epoch(4), Seq(7), "0f3c9a", 262, "node_expired", "00ff00ff00ff00ff")),)
