"""The routing client's Prometheus metrics; listed for users in ``docs/reference/metrics.md``."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from controlplane.labelled_metrics import LabelledCollectors


class RoutingCollectors(LabelledCollectors):
    """The collectors that all clients with one registry share."""

    LABELS = ("cluster", "client")

    def __init__(self, registry: CollectorRegistry) -> None:
        """Create and register the collectors; done once for each registry by :meth:`LabelledCollectors.of`."""
        super().__init__(registry)
        self.term = Gauge("controlplane_client_term", "Term of the table in use", self.LABELS, registry=registry)
        self.epoch = Gauge("controlplane_client_epoch", "Epoch of the table in use", self.LABELS, registry=registry)
        self.tables = Counter("controlplane_client_tables", "Tables shown", self.LABELS, registry=registry)
        self.rebuilds = Gauge(
            "controlplane_client_rebuilds",
            "Times that the table was read from its start again",
            self.LABELS,
            registry=registry,
        )
        self.foreign_records = Gauge(
            "controlplane_client_foreign_records",
            "Foreign records of routing-table that were skipped",
            self.LABELS,
            registry=registry,
        )
        self.unavailable = Counter(
            "controlplane_client_log_unavailable",
            "Requests that Kafka did not answer in time",
            self.LABELS,
            registry=registry,
        )
        self.failed = Gauge(
            "controlplane_client_failed",
            "1 after an error that ended the client's following of the table",
            self.LABELS,
            registry=registry,
        )


class RoutingMetrics:
    """The metrics of one client, until :meth:`close`.

    The label ``client`` is the lowest number that no open client of the cluster has in this registry: 1 for the only
    client, also after it was closed and opened again.

    Args:
        cluster: the cluster's name, the first label.
        registry: holds the metrics.
    """

    def __init__(self, cluster: str, registry: CollectorRegistry) -> None:
        self._collectors = collectors = RoutingCollectors.of(registry)
        self._labels: tuple[str, ...] | None
        self._labels = labels = collectors.claim_number(cluster)
        self.term = collectors.term.labels(*labels)
        self.epoch = collectors.epoch.labels(*labels)
        self.tables = collectors.tables.labels(*labels)
        self.rebuilds = collectors.rebuilds.labels(*labels)
        self.foreign_records = collectors.foreign_records.labels(*labels)
        self.unavailable = collectors.unavailable.labels(*labels)
        self.failed = collectors.failed.labels(*labels)

    def close(self) -> None:
        """Remove the metrics from the registry. Idempotent."""
        if self._labels is not None:
            self._collectors.release(self._labels)
            self._labels = None
