"""Samples of the subject ``cluster``: its events and the row of the table's settings."""

from controlplane.core.cluster.events import (
    ClusterCreated,
    FormerSilenceLimitEnded,
    NodesForgotten,
    PolicyChanged,
    TermOpened,
)
from controlplane.core.cluster.policy import ClusterPolicy, FormerSilenceLimit, HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.values.identifiers import Term
from tests.golden.samples.sample import STARTED_MS, Sample

POLICY = ClusterPolicy(hash_function=HashFunction.MD5, protected_ratio=0.25)

CREATION_EVENTS = (
    ClusterCreated("0f3c9a", ClusterPolicy()),
    TermOpened(Term(3), "controller-1", "1.0.0", 1, POLICY),
)
POLICY_EVENTS = (
    PolicyChanged(POLICY, FormerSilenceLimit(5_000, 17)),
    PolicyChanged(ClusterPolicy(), None),
    FormerSilenceLimitEnded(2_500),
)
FORGETTING_EVENTS = (
    PolicyChanged(ClusterPolicy(forget_nodes_after_ms=3_600_000), None),
    PolicyChanged(ClusterPolicy(), None),
    NodesForgotten(("n7", "n8"), STARTED_MS),
)

HANDOFF_EVENTS = (
    PolicyChanged(ClusterPolicy(bundle_moves_in_flight=0), None),
    PolicyChanged(ClusterPolicy(handoff_limit_ms=4_000), None),
    PolicyChanged(ClusterPolicy(copy_limit_ms=4_000), None),
)

ROWS = (
    Sample("plain", TableSettings(256, 2, HashFunction.CRC32C, 2_500)),
    Sample("with the level", TableSettings(256, 2, HashFunction.CRC32C, 2_500, 3)),
    Sample("with the floor", TableSettings(256, 2, HashFunction.CRC32C, 2_500, 3, STARTED_MS)),
)
