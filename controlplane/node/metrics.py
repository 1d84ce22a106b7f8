"""The node agent's Prometheus metrics; listed for users in ``docs/reference/metrics.md``."""

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge


class NodeMetrics:
    """One set of metrics for one agent in a process."""

    def __init__(self, registry: CollectorRegistry | None = REGISTRY) -> None:
        """Register the metrics; a process with several agents passes a registry each, or None to show none."""
        self.epoch = Gauge("controlplane_node_epoch", "Epoch of the table that the node works with", registry=registry)
        self.slots = Gauge("controlplane_node_slots", "Slots held, by part played", ["part"], registry=registry)
        self.bundles = Gauge("controlplane_node_bundles", "Bundles owned", registry=registry)
        self.serves = Gauge("controlplane_node_serves", "1 while the node may serve what it holds", registry=registry)
        self.heartbeat_age_ms = Gauge(
            "controlplane_node_heartbeat_age_ms",
            "Time since the last acknowledged heartbeat was sent",
            registry=registry,
        )
        self.table_age_ms = Gauge(
            "controlplane_node_table_age_ms",
            "Time since the last reading of the routing table that came to its end began",
            registry=registry,
        )
        self.heartbeats = Counter("controlplane_node_heartbeats", "Heartbeats, by fate", ["fate"], registry=registry)
        self.load_reports = Counter("controlplane_node_load_reports", "Load reports sent", registry=registry)
        self.failed = Gauge("controlplane_node_failed", "1 after the agent ended by an error", registry=registry)
