"""The node agent's Prometheus metrics; listed for users in ``docs/reference/metrics.md``."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from controlplane.core.values.identifiers import NodeId
from controlplane.labelled_metrics import LabelledCollectors


class NodeCollectors(LabelledCollectors):
    """The collectors that all agents with one registry share."""

    LABELS = ("cluster", "node")

    def __init__(self, registry: CollectorRegistry) -> None:
        """Create and register the collectors; done once for each registry by :meth:`LabelledCollectors.of`."""
        super().__init__(registry)
        self.epoch = Gauge(
            "controlplane_node_epoch", "Epoch of the table that the node uses", self.LABELS, registry=registry
        )
        self.slots = Gauge(
            "controlplane_node_slots",
            "Slots held, by part (slot leader or follower)",
            (*self.LABELS, "part"),
            registry=registry,
        )
        self.bundles = Gauge("controlplane_node_bundles", "Bundles owned", self.LABELS, registry=registry)
        self.serves = Gauge(
            "controlplane_node_serves", "1 while the node may serve what it holds", self.LABELS, registry=registry
        )
        self.heartbeat_age_ms = Gauge(
            "controlplane_node_heartbeat_age_ms",
            "Time since the last acknowledged heartbeat was sent",
            self.LABELS,
            registry=registry,
        )
        self.table_age_ms = Gauge(
            "controlplane_node_table_age_ms",
            "Time since the beginning of the last complete reading of the routing table",
            self.LABELS,
            registry=registry,
        )
        self.heartbeats = Counter(
            "controlplane_node_heartbeats", "Heartbeats, by fate", (*self.LABELS, "fate"), registry=registry
        )
        self.load_reports = Counter(
            "controlplane_node_load_reports", "Load reports, by fate", (*self.LABELS, "fate"), registry=registry
        )
        self.requests_voided = Counter(
            "controlplane_node_requests_voided",
            "Requests that lost the right to be served before they ended, by what they were for (slot or bundle)",
            (*self.LABELS, "of"),
            registry=registry,
        )
        self.callbacks_hung = Counter(
            "controlplane_node_callbacks_hung",
            "Callbacks that took longer than their limit, by what they were for (slot or bundle)",
            (*self.LABELS, "of"),
            registry=registry,
        )
        self.foreign_records = Gauge(
            "controlplane_node_foreign_records",
            "Foreign records of routing-table that were skipped",
            self.LABELS,
            registry=registry,
        )
        self.failed = Gauge(
            "controlplane_node_failed", "1 after the agent ended by an error", self.LABELS, registry=registry
        )


class NodeMetrics:
    """The metrics of one agent, until :meth:`close`.

    Args:
        cluster: the cluster's name, the first label.
        node_id: the second label. Two agents of one node in one process write to the same metrics.
        registry: holds the metrics.
    """

    def __init__(self, cluster: str, node_id: NodeId, registry: CollectorRegistry) -> None:
        self._collectors = collectors = NodeCollectors.of(registry)
        self._labels: tuple[str, ...] | None
        self._labels = labels = collectors.claim(cluster, node_id)
        self.epoch = collectors.epoch.labels(*labels)
        self.slots_led = collectors.slots.labels(*labels, "leader")
        self.slots_followed = collectors.slots.labels(*labels, "follower")
        self.bundles = collectors.bundles.labels(*labels)
        self.serves = collectors.serves.labels(*labels)
        self.heartbeat_age_ms = collectors.heartbeat_age_ms.labels(*labels)
        self.table_age_ms = collectors.table_age_ms.labels(*labels)
        self.heartbeats_acknowledged = collectors.heartbeats.labels(*labels, "acknowledged")
        self.heartbeats_given_up = collectors.heartbeats.labels(*labels, "given_up")
        self.load_reports_acknowledged = collectors.load_reports.labels(*labels, "acknowledged")
        self.load_reports_given_up = collectors.load_reports.labels(*labels, "given_up")
        self.load_reports_not_measured = collectors.load_reports.labels(*labels, "not_measured")
        self.slot_requests_voided = collectors.requests_voided.labels(*labels, "slot")
        self.bundle_requests_voided = collectors.requests_voided.labels(*labels, "bundle")
        self.slot_callbacks_hung = collectors.callbacks_hung.labels(*labels, "slot")
        self.bundle_callbacks_hung = collectors.callbacks_hung.labels(*labels, "bundle")
        self.foreign_records = collectors.foreign_records.labels(*labels)
        self.failed = collectors.failed.labels(*labels)

    def close(self) -> None:
        """Remove the metrics from the registry. Idempotent."""
        if self._labels is not None:
            self._collectors.release(self._labels)
            self._labels = None
