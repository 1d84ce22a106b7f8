"""Composes a controller on Kafka, Redis and the system's clock."""

import random
import secrets
from collections.abc import Callable
from contextlib import ExitStack, closing

import structlog

from controlplane.adapters.kafka_admin import verify_topics
from controlplane.adapters.kafka_admin_client import KafkaAdmin
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader, KafkaTransactionalWriter
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector
from controlplane.adapters.kafka_transaction_timeout import ask_transaction_timeout_ms
from controlplane.adapters.redis_lease import RedisLeaseStore
from controlplane.adapters.redis_lock import RedisLockStore
from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.bootstrap.topics import topic_specs
from controlplane.codec.framing import framing_with
from controlplane.config import DECISIONS, ControllerConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.election.leading import ControllerMachine
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.errors import ConfigurationError
from controlplane.ports import (
    Clock,
    EventWriter,
    LeaseStore,
    LockStore,
    LogReader,
    Signal,
    Threads,
    TopicInspector,
    TransactionalWriter,
)
from controlplane.service.components import ControllerComponents
from controlplane.service.controller import Controller
from controlplane.service.dead_letters import DeadLetterWriter
from controlplane.service.follower import LogFollower
from controlplane.service.input_reader import InputReader
from controlplane.service.lease_keeper import LeaseKeeper
from controlplane.service.lease_notes import LeaseNotes
from controlplane.service.lease_profiles import AnyProfile, OwnLease, SofaLease
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.promise_watch import PromiseWatch
from controlplane.service.snapshots import SnapshotKeeper
from controlplane.service.ticker import Ticker
from controlplane.service.topic_ends import TopicEnds, longest_unanswered_ms

LETTER_TIMEOUT_MS = 5_000
"""Time limit for writing a dead letter, after which it is sent again."""
SNAPSHOT_TIMEOUT_MS = 30_000
"""Time limit for writing a part of a snapshot; long, because no decision waits for it."""


def run_controller(config: ControllerConfig, policy: ClusterPolicy, slot_policies: SlotPolicies, stop: Signal) -> None:
    """Run a controller until ``stop`` is set.

    Args:
        config: this process's settings.
        policy: the first policy of a new cluster; an existing cluster has its policy in the log.
        slot_policies: the slot policies that this controller can decide by, by name.
        stop: set it to make the controller hand over the lease and return.

    Raises:
        PrerequisiteError: a topic is missing.
        ConfigurationError: settings of a topic break a promise, or the slot policy refuses its options.
        StopError: continuing would do harm; the message says what to check.
    """
    process = secrets.token_hex(4)
    structlog.contextvars.bind_contextvars(
        cluster=config.cluster.name, controller=config.controller_id, process=process
    )
    kafka = config.kafka
    verify_topics(kafka.bootstrap_servers, config.cluster.name, topic_specs(), kafka.security)
    timeout_of_transactions_ms = ask_transaction_timeout_ms(
        kafka.bootstrap_servers, config.cluster.name, kafka.security
    )
    lock, timeout_ms = config.sofa_lease, config.lease.store_timeout_ms
    with ExitStack() as stack:
        tick_writer = stack.enter_context(closing(_event_writer(config, config.lease.duration_ms)))
        letter_writer = stack.enter_context(closing(_event_writer(config, LETTER_TIMEOUT_MS)))
        snapshot_writer = stack.enter_context(closing(_event_writer(config, SNAPSHOT_TIMEOUT_MS)))
        stores = [
            stack.enter_context(closing(RedisLeaseStore(config.cluster, config.redis_url, timeout_ms, process)))
            for _ in range(2)
        ]
        lock_store = None
        if lock is not None:
            lock_store = RedisLockStore(config.cluster, config.redis_url, lock.data_center, lock.lock_name, timeout_ms)
            stack.callback(lock_store.close)
        controller = compose_controller(
            config,
            policy,
            slot_policies=slot_policies,
            clock=SystemClock(),
            threads=SystemThreads(),
            metrics=ControllerMetrics(),
            lease_stores=(stores[0], stores[1]),
            lock_store=lock_store,
            open_reader=lambda: KafkaLogReader(config.cluster, config.kafka),
            open_transactions=lambda: KafkaTransactionalWriter(config.cluster, kafka, timeout_of_transactions_ms),
            open_inspector=lambda: KafkaTopicInspector(
                KafkaAdmin(config.cluster.name, kafka.bootstrap_servers, kafka.security)
            ),
            event_writers=(tick_writer, letter_writer, snapshot_writer),
        )
        controller.run(stop)


def compose_controller(  # noqa: PLR0913 - one argument for each thing of the world
    config: ControllerConfig,
    policy: ClusterPolicy,
    *,
    slot_policies: SlotPolicies = BUILT_IN_POLICIES,
    clock: Clock,
    threads: Threads,
    metrics: ControllerMetrics,
    lease_stores: tuple[LeaseStore, LeaseStore],
    lock_store: LockStore | None = None,
    open_reader: Callable[[], LogReader],
    open_transactions: Callable[[], TransactionalWriter],
    open_inspector: Callable[[], TopicInspector],
    event_writers: tuple[EventWriter, EventWriter, EventWriter],
    random_source: random.Random | None = None,
) -> Controller:
    """Compose a controller on the given ports; tests pass in-memory ones.

    Args:
        config: this process's settings.
        policy: the first policy of a new cluster.
        slot_policies: the slot policies that this controller can decide by, by name.
        clock: monotonic and wall time.
        threads: makes the controller's threads.
        metrics: the controller's metrics.
        lease_stores: two connections to the same store: one for the renewing thread, one for take-overs.
        lock_store: the store of the lock, for ``config.sofa_lease``.
        open_reader: makes a reader of the log.
        open_transactions: makes a writer under the cluster's transactional id.
        open_inspector: connects to what describes Kafka's topics.
        event_writers: one for ticks, one for dead letters, one for snapshots.
        random_source: for the backoff after a failure and the id of a new log; seeded by the system if not given.
    """
    random_source = random_source or random.Random()  # noqa: S311 - spreads waits and names logs, no secret
    ticker = Ticker(event_writers[0], clock, threads, config.controller_id, config.tick_interval_ms)
    machine = ControllerMachine(config.lease.duration_ms)
    profile = None if config.follow_only else _lease_profile(config, clock, lease_stores[0], lock_store, machine)
    ends = TopicEnds(open_reader, clock, threads)
    notes = _lease_notes(config, clock, lease_stores[0], ticker, ends)
    keeper = None if profile is None else _lease_keeper(config, clock, threads, profile, metrics, notes)
    dead_letters = DeadLetterWriter(event_writers[1], config.controller_id, metrics)
    components = ControllerComponents(
        config=config,
        first_policy=policy,
        slot_policies=slot_policies,
        clock=clock,
        metrics=metrics,
        lease_store=lease_stores[1],
        open_reader=open_reader,
        open_transactions=open_transactions,
        follower=LogFollower(open_reader, clock, metrics.foreign_records.labels(DECISIONS).inc),
        input_reader=InputReader(
            open_reader, clock, metrics, framing_with(config.kafka.schema_ids), lambda: dead_letters.unanswered
        ),
        dead_letters=dead_letters,
        snapshots=SnapshotKeeper(event_writers[2], open_reader, clock, threads, config.snapshots, metrics),
        new_log_id=lambda: f"{random_source.getrandbits(128):032x}",
    )
    watch = PromiseWatch(open_inspector, config.cluster.name, topic_specs(), threads, metrics)
    return Controller(components, machine, keeper, ticker, ends, promise_watch=watch, random_source=random_source)


def _lease_notes(
    config: ControllerConfig, clock: Clock, lease_store: LeaseStore, ticker: Ticker, ends: TopicEnds
) -> LeaseNotes:
    return LeaseNotes(
        lease_store,
        clock,
        config.controller_id,
        ticker.since_acknowledged_ms,
        # A contender that has begun just now has not reached any partition yet.
        lambda: longest_unanswered_ms(ticker, ends) if ends.has_answers else None,
    )


def _lease_keeper(
    config: ControllerConfig,
    clock: Clock,
    threads: Threads,
    profile: AnyProfile,
    metrics: ControllerMetrics,
    notes: LeaseNotes,
) -> LeaseKeeper:
    return LeaseKeeper(
        profile,
        clock,
        threads,
        metrics=metrics,
        store_timeout_ms=config.lease.store_timeout_ms,
        rest_ms=config.lease.duration_ms,
        notes=notes,
    )


def _lease_profile(
    config: ControllerConfig,
    clock: Clock,
    lease_store: LeaseStore,
    lock_store: LockStore | None,
    machine: ControllerMachine,
) -> AnyProfile:
    if config.sofa_lease is None:
        return OwnLease(
            lease_store,
            clock,
            config.controller_id,
            config.lease,
            stop_when_store_is_lost=config.stop_when_lease_store_is_lost,
            is_ready=lambda: machine.is_fit(clock.monotonic_ms()),
        )
    if lock_store is None:
        raise ConfigurationError("election by SOFARegistry's lock needs the store of the lock: give lock_store")
    return SofaLease(lock_store, clock, config.controller_id, config.sofa_lease)


def _event_writer(config: ControllerConfig, message_timeout_ms: int) -> EventWriter:
    return KafkaEventWriter(config.cluster, config.kafka, message_timeout_ms)
