"""Samples of the log: decisions with the events of all subjects, and a part of a snapshot."""

from dataclasses import replace

from controlplane.core.cluster.events import FeatureLevelRaised, PolicyChanged, TermOpened
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.log.decision import Cause, CauseKind, Decision
from controlplane.core.log.snapshots.snapshot_part import SnapshotPart
from controlplane.core.values.identifiers import Epoch, Seq, Term
from tests.golden.samples import bundles, cluster, intents, membership, slots
from tests.golden.samples.sample import STARTED_MS, Sample

_LATER_CAUSES = {CauseKind.NODES_FORGOTTEN, CauseKind.BUNDLES_HANDED_OFF, CauseKind.SLOTS_HANDED_OFF}
_EVERYTHING = Decision(
    seq=Seq(7),
    term=Term(3),
    epoch=Epoch(4),
    log_id="0f3c9a",
    controller_id="controller-1",
    feature_level=1,
    decided_at_ms=STARTED_MS + 5,
    causes=tuple(Cause(kind, kind.value, "membership[0]@17") for kind in CauseKind if kind not in _LATER_CAUSES),
    events=(
        *cluster.CREATION_EVENTS,
        *membership.NODE_EVENTS,
        *slots.OPERATOR_EVENTS,
        *cluster.POLICY_EVENTS,
        *slots.TABLE_EVENTS,
        *bundles.EVENTS,
        *membership.EVICTION_EVENTS,
        *intents.EVENTS,
    ),
    positions={f"heartbeats[{number}]": 100 + number for number in range(12)} | {"membership[0]": 18},
    policy_fingerprint="00112233445566aa",
    certificate=slots.CERTIFICATE,
    previous_digest="ab" * 32,
    state_digest="cd" * 32,
    moves_carried_out=5,
    leader_changes_carried_out=3,
    moves_left=2,
)
_RIGHTS = replace(
    _EVERYTHING,
    feature_level=2,
    events=(
        PolicyChanged(replace(cluster.POLICY, intent_rights={"ops-*": "drain_node undrain_node", "ada": "*"}), None),
        IntentAnswered("intent-5", "drain_node", "bob", IntentOutcome.REFUSED, "'bob' may not ask for drain_node"),
    ),
    certificate=None,
)
_LEVELS = replace(
    _EVERYTHING,
    feature_level=2,
    events=(
        TermOpened(
            Term(3),
            "controller-1",
            "1.0.0",
            1,
            cluster.POLICY,
            {"heartbeats[0]": 5, "intents[0]": 0, "membership[0]": 17},
        ),
        FeatureLevelRaised(2),
    ),
    certificate=None,
)
_TENANTS = replace(
    _EVERYTHING,
    feature_level=2,
    events=(TermOpened(Term(3), "controller-1", "1.0.0", 2, cluster.POLICY, cluster="eu"), *bundles.TENANT_EVENTS),
    certificate=None,
)
_PROCESSES = replace(_EVERYTHING, feature_level=3, events=(membership.ADMITTED_PROCESS,), certificate=None)
_FORGETTING = replace(
    _EVERYTHING,
    feature_level=3,
    causes=(Cause(CauseKind.NODES_FORGOTTEN, "0f3c9a", "2 gone for 86400000 ms of log time"),),
    events=cluster.FORGETTING_EVENTS,
    certificate=None,
)
_HANDOFFS = replace(
    _EVERYTHING,
    feature_level=3,
    causes=(
        Cause(CauseKind.BUNDLES_HANDED_OFF, "0f3c9a", "released by node-1"),
        Cause(CauseKind.SLOTS_HANDED_OFF, "7", "2 handoffs of slots go on"),
    ),
    events=(
        *cluster.HANDOFF_EVENTS,
        *membership.HANDOFF_EVENTS,
        *bundles.HANDOFF_EVENTS,
        *slots.HANDOFF_EVENTS,
    ),
    certificate=None,
)
POSITIONS_ONLY = Decision(
    seq=Seq(8),
    term=Term(3),
    epoch=Epoch(4),
    log_id="0f3c9a",
    controller_id="controller-1",
    feature_level=1,
    decided_at_ms=STARTED_MS + 600_000,
    causes=(Cause(CauseKind.POSITIONS, "controller-1", ""),),
    events=(),
    positions={"membership[0]": 19},
    policy_fingerprint="00112233445566aa",
    certificate=None,
    previous_digest="ef" * 32,
    state_digest="cd" * 32,
)

DECISIONS = (
    Sample("everything", _EVERYTHING),
    Sample("everything in parts", _EVERYTHING, max_part_bytes=700),
    Sample("rights", _RIGHTS),
    Sample("levels", _LEVELS),
    Sample("tenants", _TENANTS),
    Sample("processes", _PROCESSES),
    Sample("forgetting", _FORGETTING),
    Sample("handoffs", _HANDOFFS),
    Sample("handoffs in parts", _HANDOFFS, max_part_bytes=700),
    Sample("positions only", POSITIONS_ONLY),
)

SNAPSHOT_PARTS = (
    Sample(
        "plain",
        SnapshotPart(
            snapshot_id="0000000000000000007-0000000003-1",
            part=0,
            part_count=2,
            log_id="0f3c9a",
            term=Term(3),
            seq=Seq(7),
            epoch=Epoch(4),
            next_decision_offset=31,
            state_digest="cd" * 32,
            body=b'{"nodes":{',
            last_decision_offset=29,
            decided_at_ms=STARTED_MS,
            feature_level=1,
            code_version="1.0.0",
            body_digest="ab" * 32,
        ),
    ),
)
