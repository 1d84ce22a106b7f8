"""Samples of the subject ``bundles``: reports of load, its events, its rows and the candidates for split and shed."""

from controlplane.core.bundles.bundle import Bundle, Namespace
from controlplane.core.bundles.candidate import Candidate
from controlplane.core.bundles.events import BundlesAssigned, NamespaceCreated, TenantDeleted, TenantSet
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage
from controlplane.core.bundles.tenants import Tenant
from controlplane.core.slots.reports import SlotLoad
from controlplane.core.values.addresses import Address
from tests.golden.samples.sample import BUNDLE_ID, KV, STARTED_MS, Sample

_UNKNOWN = ResourceUsage(-1.0, -1.0)
BUNDLES = (Bundle("kv", 0, 1 << 31, "node-1"), Bundle("kv", 1 << 31, 1 << 32, None))

LOAD_REPORTS = (
    Sample(
        "full",
        LoadReport(
            node_id="node-1",
            incarnation=STARTED_MS,
            sent_at_ms=STARTED_MS + 1,
            cpu=ResourceUsage(37.5, 400.0),
            memory=ResourceUsage(512.0, 2_048.0),
            direct_memory=ResourceUsage(0.0, 64.0),
            bandwidth_in=ResourceUsage(1_000.25, 1_000_000.0),
            bandwidth_out=_UNKNOWN,
            addresses=(KV, Address("admin", "10.0.0.7", 8_080)),
            version="1.0.0",
            started_at_ms=STARTED_MS,
            bundles=(BundleLoad(BUNDLE_ID, 10.5, 11.5, 1_050.0, 1_150.0, 3, 2, 1, 4_096),),
            slots=(SlotLoad(17, 10.5, 2_200.0, 4_096),),
        ),
    ),
    Sample(
        "plain",
        LoadReport("node-1", 1, 0, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, _UNKNOWN, (), "", 0, bundles=(), slots=()),
    ),
)

EVENTS = (
    NamespaceCreated(Namespace("kv", 2), BUNDLES),
    BundlesAssigned(BUNDLES),
)

TENANT_EVENTS = (
    TenantSet(Tenant("acme", ("eu", "us"))),
    TenantSet(Tenant("idle", ())),
    TenantDeleted("idle"),
)

ROWS = (
    Sample("plain", BUNDLES[0]),
    Sample("without an owner", BUNDLES[1]),
    Sample("plain", Namespace("kv", 4)),
)

CANDIDATES = (
    Sample("split", Candidate("c1", "split", BUNDLE_ID, "node-1", "pulsar-modular-split", {"topics": "3"}, 1, 2)),
    Sample("shed", Candidate("c2", "shed", BUNDLE_ID, "node-1", "pulsar-threshold", {}, 1, 2)),
)
