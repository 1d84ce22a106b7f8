"""The routing client's Prometheus metrics; listed for users in ``docs/reference/metrics.md``."""

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge


class RoutingMetrics:
    """One set of metrics for one client in a process."""

    def __init__(self, registry: CollectorRegistry | None = REGISTRY) -> None:
        """Register the metrics; a process with several clients passes a registry each, or None to show none."""
        self.term = Gauge("controlplane_client_term", "Term of the table that is routed by", registry=registry)
        self.epoch = Gauge("controlplane_client_epoch", "Epoch of the table that is routed by", registry=registry)
        self.tables = Counter("controlplane_client_tables", "Tables swapped in", registry=registry)
        self.rebuilds = Gauge(
            "controlplane_client_rebuilds", "Times that the table was read from its start again", registry=registry
        )
        self.unavailable = Counter(
            "controlplane_client_log_unavailable", "Questions that Kafka did not answer in time", registry=registry
        )
        self.failed = Gauge(
            "controlplane_client_failed", "1 after an error that ended the following of the table", registry=registry
        )
