"""Composes a controller from its parts: real Kafka, real Redis, the system's clock."""

import random
import threading
from collections.abc import Callable

import structlog

from controlplane.adapters.kafka_admin import verify_topics
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader, KafkaTransactionalWriter
from controlplane.adapters.redis_lease import RedisLeaseStore
from controlplane.adapters.system_clock import SystemClock
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.framing import framing_with
from controlplane.config import ControllerConfig
from controlplane.core.policy import Policy
from controlplane.core.slot_policies import BUILT_IN_POLICIES
from controlplane.core.slot_policy import SlotPolicies
from controlplane.ports import Clock, EventWriter, LeaseStore, LogReader, TransactionalWriter
from controlplane.service.controller import Controller
from controlplane.service.dead_letters import DeadLetterWriter
from controlplane.service.follower import LogFollower
from controlplane.service.intake import Intake
from controlplane.service.lease_keeper import LeaseKeeper
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.takeover import Parts
from controlplane.service.ticker import Ticker

TRANSACTION_TIMEOUT_MS = 5_000
"""How long a dead leader's open transaction may hold readers back."""


def run_controller(
    config: ControllerConfig, policy: Policy, slot_policies: SlotPolicies, stop: threading.Event
) -> None:
    """Run a controller until ``stop`` is set.

    Args:
        config: this process's settings.
        policy: the first policy of a cluster that does not exist yet; an existing one has its own in the log.
        slot_policies: what this controller can decide by, by name.
        stop: set it to resign and return.

    Raises:
        ConfigurationError: a topic is missing or its settings break a promise, or the slot policy refuses its options.
        StopError: going on would do harm; the message says what to look at.
    """
    structlog.contextvars.bind_contextvars(cluster=config.cluster.name, controller=config.controller_id)
    verify_topics(config.kafka.bootstrap_servers, config.cluster.name, topic_specs(), config.kafka.security)
    tick_writer = _event_writer(config, config.lease.duration_ms)
    letter_writer = _event_writer(config, TRANSACTION_TIMEOUT_MS)
    stores = [RedisLeaseStore(config.cluster, config.redis_url, config.lease.store_timeout_ms) for _ in range(2)]
    try:
        controller = compose_controller(
            config,
            policy,
            slot_policies=slot_policies,
            clock=SystemClock(),
            metrics=ControllerMetrics(),
            lease_stores=(stores[0], stores[1]),
            open_reader=lambda: KafkaLogReader(config.cluster, config.kafka),
            open_transactions=lambda: KafkaTransactionalWriter(config.cluster, config.kafka, TRANSACTION_TIMEOUT_MS),
            event_writers=(tick_writer, letter_writer),
        )
        controller.run(stop)
    finally:
        tick_writer.close()
        letter_writer.close()
        for store in stores:
            store.close()


def compose_controller(  # noqa: PLR0913 - one argument for each thing of the world
    config: ControllerConfig,
    policy: Policy,
    *,
    slot_policies: SlotPolicies = BUILT_IN_POLICIES,
    clock: Clock,
    metrics: ControllerMetrics,
    lease_stores: tuple[LeaseStore, LeaseStore],
    open_reader: Callable[[], LogReader],
    open_transactions: Callable[[], TransactionalWriter],
    event_writers: tuple[EventWriter, EventWriter],
    random_source: random.Random | None = None,
) -> Controller:
    """A controller on the given ports; tests give it in-memory ones.

    Args:
        config: this process's settings.
        policy: the first policy of a new cluster.
        slot_policies: what this controller can decide by, by name.
        clock: monotonic and wall time.
        metrics: where it counts.
        lease_stores: two connections to the same store: one for the renewing thread, one for take-overs.
        open_reader: makes a reader of the log.
        open_transactions: makes a writer under the cluster's transactional id.
        event_writers: one for ticks, one for dead letters.
        random_source: for the wait after a fall; seeded by the system unless given.
    """
    keeper = None
    if not config.follow_only:
        keeper = LeaseKeeper(
            lease_stores[0],
            clock,
            config.controller_id,
            config.lease,
            stop_when_store_is_lost=config.stop_when_lease_store_is_lost,
        )
    parts = Parts(
        config=config,
        first_policy=policy,
        slot_policies=slot_policies,
        clock=clock,
        metrics=metrics,
        lease_store=lease_stores[1],
        open_reader=open_reader,
        open_transactions=open_transactions,
        follower=LogFollower(open_reader, clock),
        intake=Intake(open_reader, clock, metrics, framing_with(config.kafka.schema_ids)),
        dead_letters=DeadLetterWriter(event_writers[1], config.controller_id, metrics),
    )
    ticker = Ticker(event_writers[0], clock, config.controller_id, config.tick_interval_ms)
    return Controller(parts, keeper, ticker, random_source or random.Random())  # noqa: S311 - spreads waits, no secret


def _event_writer(config: ControllerConfig, message_timeout_ms: int) -> EventWriter:
    return KafkaEventWriter(config.cluster, config.kafka, message_timeout_ms)
