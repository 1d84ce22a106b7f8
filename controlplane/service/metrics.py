"""The controller's Prometheus metrics; listed for users in ``docs/reference/metrics.md``."""

from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

STANDS_AFTER_MS: Final = 5_000
"""Time in ms of the controller's own clock without a tick after which a heartbeat partition's log time stands still."""

_COMMIT_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class ControllerMetrics:
    """The metrics of one controller."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        """Register the metrics; tests that run several controllers in one process pass a registry to each."""
        self.leading = Gauge("controlplane_leading", "1 while this controller leads, else 0", registry=registry)
        self.term = Gauge(
            "controlplane_term", "Term of the last decision that this controller knows", registry=registry
        )
        self.epoch = Gauge("controlplane_epoch", "Epoch of the routing table", registry=registry)
        self.seq = Gauge("controlplane_seq", "Seq of the last decision", registry=registry)
        self.nodes = Gauge("controlplane_nodes", "Members by status", ["status"], registry=registry)
        self.evictions_frozen = Gauge(
            "controlplane_evictions_frozen", "1 while self-preservation freezes evictions", registry=registry
        )
        self.slots_refused = Gauge(
            "controlplane_slots_refused",
            "1 while the slot policy cannot make a table and the slots stay unchanged",
            registry=registry,
        )
        self.paused = Gauge(
            "controlplane_reconciliation_paused", "1 while reconciliation is paused by an operator", registry=registry
        )
        self.decisions = Counter(
            "controlplane_decisions", "Decisions committed by this controller, by cause", ["cause"], registry=registry
        )
        self.moves = Counter(
            "controlplane_moved_replicas", "Replicas moved by this controller's decisions", registry=registry
        )
        self.dead_letters = Counter(
            "controlplane_dead_letters", "Refused inputs, by reason", ["reason"], registry=registry
        )
        self.dead_letters_dropped = Counter(
            "controlplane_dead_letters_dropped",
            "Refused heartbeats without a dead letter, because too many letters wait for the topic",
            registry=registry,
        )
        self.commit_seconds = Histogram(
            "controlplane_commit_seconds",
            "Time from the beginning of a decision's transaction to its commit",
            buckets=_COMMIT_BUCKETS_S,
            registry=registry,
        )
        self._register_reading(registry)
        self.steps_down = Counter(
            "controlplane_steps_down",
            "Times that this controller stopped leading, by reason. On request: resigned, shutdown, lease handed over. "
            "Otherwise: lease lost, stalled, cut off from Kafka, deaf to a partition, unreachable, commit without an "
            "answer, fenced, failed (see its log)",
            ["reason"],
            registry=registry,
        )
        self.lease_store_reachable = Gauge(
            "controlplane_lease_store_reachable",
            "0 while the lease store does not answer this controller, or refuses it, else 1",
            registry=registry,
        )
        self.lease_store_reachable.set(1)
        self._register_snapshots(registry)

    def _register_reading(self, registry: CollectorRegistry) -> None:
        self.lag_ms = Gauge(
            "controlplane_observation_lag_ms",
            "Wall clock minus the log time of the newest tick observed: how far this controller is behind",
            registry=registry,
        )
        self.partitions_without_ticks = Gauge(
            "controlplane_heartbeat_partitions_without_ticks",
            f"Partitions of heartbeats without ticks for {STANDS_AFTER_MS // 1_000} s; "
            "nodes with heartbeats there are not fenced",
            registry=registry,
        )
        self.clock_spread_ms = Gauge(
            "controlplane_broker_clock_spread_ms",
            "Greatest less least time of the newest ticks over the partitions of heartbeats, in ms: how far the clocks "
            "of their leaders' brokers are apart, or a partition is read late",
            registry=registry,
        )
        self.topic_settings_known = Gauge(
            "controlplane_topic_settings_known",
            "0 while Kafka does not show this controller the settings of its topics, which are looked at twice a "
            "minute, else 1",
            registry=registry,
        )
        self.topic_settings_known.set(1)
        self.broken_promises = Gauge(
            "controlplane_broken_promises",
            "Settings of topics that break a promise; if a second look finds one as well, the controller ends",
            registry=registry,
        )
        self.inputs = Counter("controlplane_inputs", "Input records processed, by topic", ["topic"], registry=registry)
        self.foreign_records = Counter(
            "controlplane_foreign_records",
            "Foreign records in decisions, and foreign keys in routing-table at its repairs, by topic",
            ["topic"],
            registry=registry,
        )

    def _register_snapshots(self, registry: CollectorRegistry) -> None:
        self.snapshots = Counter(
            "controlplane_snapshots", "Snapshots of the state written by this controller", registry=registry
        )
        self.snapshot_failures = Counter(
            "controlplane_snapshot_failures",
            "Times that this controller failed to write a snapshot that was due",
            registry=registry,
        )
        self.snapshot_seq = Gauge(
            "controlplane_snapshot_seq",
            "Seq of the newest complete snapshot that this controller wrote, or found when it began to lead",
            registry=registry,
        )
        self.snapshot_bytes = Gauge(
            "controlplane_snapshot_bytes", "Size of the last snapshot that this controller wrote", registry=registry
        )
