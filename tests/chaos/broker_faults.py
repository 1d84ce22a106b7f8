"""What goes wrong with several brokers: deaths, former leaders, clocks, too few copies, in addition to `faults`."""

import itertools
import random
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from enum import Enum
from typing import Final

from controlplane.bootstrap.connections import open_source
from controlplane.config import (
    DEAD_LETTERS,
    DECISIONS,
    HEARTBEATS,
    INTENTS,
    LOAD_REPORTS,
    MEMBERSHIP,
    ROUTING_TABLE,
    SNAPSHOTS,
)
from controlplane.core.slots.sofa.java_collections import java_hash
from controlplane.core.values.partitioning import partition_of
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.inspection.readers import DecisionFollower
from tests.chaos.broker_fault_kinds import BrokerFaultKind
from tests.chaos.broker_parts import BrokerParts
from tests.chaos.effects import Effect, dead, frozen, heard, last_heartbeats, silent
from tests.chaos.faults import Injector, Victims
from tests.chaos.proxy import LinkMode
from tests.helpers.end_markers import hidden_records
from tests.helpers.partition_leaders import PartitionLeaders
from tests.helpers.polling import poll_until
from tests.helpers.shifted_clock import why_no_shifted_clocks
from tests.helpers.transaction_states import ENDING, transaction_state
from tests.kills.cluster import KvCluster

HOUR_MS: Final = 3_600_000
_COMMIT_MS: Final = 30_000
_SLOW_MS: Final = 300
_MOVES: Final = 4
_SYNC_S: Final = 120.0
_WITHOUT_TABLE_S: Final = 20.0
_SENT_ON_S: Final = 3.0
"""Both writers of a node have sent a heartbeat by then, and were told of another leader."""
_UNDER_WAY_S: Final = 0.2
_ENDS_S: Final = 30.0
_DATED_S: Final = 10.0
_TRANSACTIONS: Final = "__transaction_state"
_TOPICS: Final = (DEAD_LETTERS, DECISIONS, ROUTING_TABLE, HEARTBEATS, MEMBERSHIP, INTENTS, SNAPSHOTS, LOAD_REPORTS)
"""In the order in which they are left with too few copies."""


class BrokerInjector(Injector):
    """Does faults to brokers as well."""

    def __init__(self, parts: BrokerParts, cluster: KvCluster, chance: random.Random) -> None:
        """Nothing has gone wrong yet."""
        super().__init__(parts, cluster, chance)
        self._several = parts
        self._leaders = PartitionLeaders(parts.bootstrap_servers)
        self._topics = itertools.cycle(_TOPICS)
        self._links = parts.brokers

    def begin(self, kind: Enum, victims: Victims) -> None:
        """Let it happen now."""
        if isinstance(kind, BrokerFaultKind):
            self._broker_actions[kind](self, victims)
        else:
            super().begin(kind, victims)

    def hold_s(self, kind: Enum) -> float:
        """How long it lasts: from less than the brokers' session to more than twice it.

        A node may be without the table for longer than a release is waited for that it does not say.
        """
        longest_s = _WITHOUT_TABLE_S if kind is BrokerFaultKind.NODE_WITHOUT_TABLE else 8.0
        return self._chance.uniform(0.5, longest_s) if isinstance(kind, BrokerFaultKind) else super().hold_s(kind)

    def end(self) -> None:
        """Undo what there is to undo, links first, and wait until every copy is in sync again.

        A broker that was killed starts only if it reaches the others.
        """
        self._links.heal()
        super().end()
        self._leaders.wait_until_in_sync(_SYNC_S)

    # -- the broker of the decisions ----------------------------------------------------------------------------------

    def _decisions_leader(self) -> int:
        return self._leaders.leader(self._name(DECISIONS))

    def _after_a_commit(self, victims: Victims) -> int:
        """The broker of the decisions, right after a decision was committed there; by chance with a slow follower."""
        broker = self._decisions_leader()
        if self._chance.random() < 1 / 3:
            self._slow_follower(self._leaders.follower(self._name(DECISIONS)), broker)
        with closing(open_source(self._cluster.real.cluster, self._cluster.real.kafka)) as source:
            decisions = DecisionFollower(source)
            self._restart_node(victims)
            assert decisions.wait_for(lambda _: True, _COMMIT_MS), "no decision on a node that was started again"
        return broker

    def _slow_follower(self, follower: int, leader: int) -> None:
        self._links.set_link(f"broker-{follower}", leader, LinkMode.OPEN, _SLOW_MS)

    def _kill_decisions(self, victims: Victims) -> None:
        self._kill_broker(self._after_a_commit(victims))

    def _pause_decisions(self, victims: Victims) -> None:
        self._pause_broker(self._after_a_commit(victims))

    def _isolate_decisions(self, victims: Victims) -> None:
        self._isolate(self._after_a_commit(victims))

    def _kill_decisions_and_leader(self, victims: Victims) -> None:
        self._kill_decisions(victims)
        self._kill_leader(victims)

    def _pause_decisions_kill_leader(self, victims: Victims) -> None:
        self._pause_decisions(victims)
        self._kill_leader(victims)

    def _isolate_decisions_kill_leader(self, victims: Victims) -> None:
        self._isolate_decisions(victims)
        self._kill_leader(victims)

    def _ask_deposed_first(self, victims: Victims) -> None:
        """The others depose a broker that every process still reaches, and sooner than them."""
        deposed = self._after_a_commit(victims)
        for name in self._several.names:
            for broker in self._others(deposed):
                self._links.set_link(name, broker, LinkMode.OPEN, _SLOW_MS)
        self._links.isolate(deposed, also_from_clients=False)
        others = [each for broker, each in self._several.brokers.kafka.brokers.items() if broker != deposed]
        elsewhere = PartitionLeaders(",".join(each.bootstrap_servers for each in others))
        poll_until(lambda: elsewhere.leader(self._name(DECISIONS)) not in {-1, deposed}, 30)
        standbys = sorted(set(self._cluster.real.controllers) - {victims.leader})
        before = {name: self._links.answered_bytes(name, deposed) for name in standbys}
        self._kill_leader(victims)
        self._looks.append(lambda: self._see_deposed(deposed, before))

    def _see_deposed(self, deposed: int, before: Mapping[str, int]) -> Effect:
        """Whether the deposed one answered standbys, and tells them still that it leads."""
        answered = [self._links.answered_bytes(name, deposed) - former for name, former in before.items()]
        told = [self._leader_as_told(name, deposed) for name in before]
        return Effect(
            set(told) == {deposed} and min(answered) > 0,
            f"broker {deposed} was deposed; standbys got {answered} bytes from it, which says that {told} lead",
        )

    def _leader_as_told(self, name: str, broker: int) -> int:
        """The broker of the decisions as that broker tells the process of that name. Others might answer sooner."""
        told_by = PartitionLeaders(self._links.address(name, broker), self._several.security)
        return told_by.leader(self._name(DECISIONS))

    # -- one broker ---------------------------------------------------------------------------------------------------

    def _broker(self, number: int) -> EmbeddedKafka:
        return self._several.brokers.kafka.brokers[number]

    def _any_broker(self) -> int:
        return self._chance.choice(sorted(self._several.brokers.kafka.brokers))

    def _kill_broker(self, number: int) -> None:
        self._broker(number).kill()
        self._undo.append(self._broker(number).start)
        self._looks.append(lambda: dead(self._broker(number)))

    def _pause_broker(self, number: int) -> None:
        self._broker(number).pause()
        self._undo.append(self._broker(number).resume)
        self._looks.append(lambda: frozen(self._broker(number)))

    def _isolate(self, number: int) -> None:
        self._links.isolate(number, self._chance.choice((LinkMode.CUT, LinkMode.HALF_OPEN)))
        self._see_silence([*self._several.names, *(f"broker-{each}" for each in self._others(number))], number)

    def _see_silence(self, callers: Sequence[str], broker: int) -> None:
        """What is on its way when a link is broken may still be counted as carried."""
        time.sleep(_UNDER_WAY_S)
        carried = {caller: self._links.answered_bytes(caller, broker) for caller in callers}
        self._looks.append(
            lambda: silent(carried, {caller: self._links.answered_bytes(caller, broker) for caller in callers})
        )

    def _kill_coordinator(self, victims: Victims) -> None:
        """The coordinator cannot reach the broker of the decisions when a transaction ends there, and is killed then.

        Its followers still fetch from it, so that the end stands. The records wait until the coordinator's copy is out
        of sync, and the markers for a coordinator that is dead then.
        """
        coordinator = self._coordinator()
        topic = self._name(DECISIONS)
        if self._decisions_leader() == coordinator:
            self._leaders.move_leader(topic, self._chance.choice(self._others(coordinator)))
        broker = self._decisions_leader()
        # Not from the controller there: a coordinator that Kafka gives up would lose its office before it is killed.
        self._links.set_link(f"broker-{coordinator}", broker, LinkMode.HALF_OPEN, also_controller=False)
        self._restart_node(victims)
        address, name = self._broker(coordinator).bootstrap_servers, self._cluster.real.cluster.transactional_id
        poll_until(lambda: transaction_state(address, name) in ENDING, 30)
        self._kill_broker(coordinator)
        # The broker of the decisions cannot get a marker from a coordinator that is dead.
        hidden = hidden_records(self._broker(broker).bootstrap_servers, (topic, 0))
        said = f"its end was decided, last stable offset {hidden} below the high watermark"
        self._looks.append(lambda: Effect(hidden > 0, said))

    def _coordinator(self) -> int:
        """The broker that coordinates the leaders' transactions: the one of the partition to which their id hashes."""
        partitions = self._leaders.partitions(_TRANSACTIONS)
        name = self._cluster.real.cluster.transactional_id
        return self._leaders.leader(_TRANSACTIONS, (java_hash(name) & 0x7FFFFFFF) % partitions)

    def _leave_too_few_copies(self, _: Victims) -> None:
        """One topic asks for all its copies, and a broker that leads no partition of it dies, if there is one."""
        topic = self._name(next(self._topics))
        self._leaders.set_least_copies(topic, 3)
        self._undo.append(lambda: self._leaders.set_least_copies(topic, 2))
        self._kill_broker(self._leaders.follower(topic))
        poll_until(lambda: len(self._leaders.partition(topic).isrs) < 3, _SYNC_S)
        in_sync = list(self._leaders.partition(topic).isrs)
        self._looks.append(lambda: Effect(len(in_sync) < 3, f"{topic}: {in_sync} in sync, 3 wanted"))

    def _lose_packets(self, _: Victims) -> None:
        """To one broker, of all processes; brokers reach one another, so that Kafka sees nothing of it."""
        broker = self._any_broker()
        for name in self._several.names:
            self._links.set_link(name, broker, LinkMode.HALF_OPEN)
        self._see_silence(self._several.names, broker)

    def _cut_leader_from_one_broker(self, victims: Victims) -> None:
        broker, mode = self._any_broker(), self._chance.choice((LinkMode.CUT, LinkMode.HALF_OPEN))
        self._links.set_link(victims.leader, broker, mode)
        self._see_silence([victims.leader], broker)

    def _cut_node_from_table(self, victims: Victims) -> None:
        """Its heartbeats go to another broker: the leader hears it, and it does not read what it has to release."""
        broker, topic = self._leaders.leader(self._name(ROUTING_TABLE)), self._name(HEARTBEATS)
        home = partition_of(victims.node.encode(), self._leaders.partitions(topic))
        if self._leaders.leader(topic, home) == broker:
            self._leaders.move_leader(topic, self._chance.choice(self._others(broker)), home)
            time.sleep(_SENT_ON_S)
        self._links.set_link(victims.node, broker, self._chance.choice((LinkMode.CUT, LinkMode.HALF_OPEN)))
        self._see_silence([victims.node], broker)
        self._looks.append(lambda: heard(self._cluster, victims.node))

    def _fill_disk(self, _: Victims) -> None:
        """No file of a broker may grow: every append fails, as on a full disk.

        The limit is the process's own, because a small file system would need the right to mount one.
        """
        number = self._any_broker()
        server = self._broker(number)
        assert server.pid is not None
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))

        def make_room() -> None:
            server.kill()
            server.start()

        self._undo.append(make_room)
        self._looks.append(lambda: self._see_full_disk(server))

    def _see_full_disk(self, server: EmbeddedKafka) -> Effect:
        """A broker whose only disk is full ends at its next append."""
        deadline_s = time.monotonic() + _ENDS_S
        while server.pid is not None and time.monotonic() < deadline_s:
            time.sleep(0.1)
        return dead(server)

    def _kill_load_follower(self, _: Victims) -> None:
        """Reports wait for its copy until Kafka gives it up; nothing else may wait."""
        broker, topic = self._any_broker(), self._name(LOAD_REPORTS)
        self._leaders.leave_only_followers(broker, topic)
        held = self._leaders.copies_on(broker)
        led = sum(self._leaders.leader(name, partition) == broker for name, partition in held)
        others = {name for name, _ in held} - {topic}
        said = f"it held {len(held)} copies, of {len(others)} other topics, and led {led}"
        self._looks.append(lambda: Effect(bool(held) and not others and not led, said))
        self._kill_broker(broker)

    # -- all brokers --------------------------------------------------------------------------------------------------

    def _restart_brokers(self, _: Victims) -> None:
        brokers = self._several.brokers.kafka.brokers
        former = [broker.pid for broker in brokers.values()]
        for broker in brokers.values():
            broker.stop()
            broker.start()
            self._leaders.wait_until_in_sync(_SYNC_S)
        restarted = sum(broker.pid not in former for broker in brokers.values())
        self._looks.append(
            lambda: Effect(restarted == len(brokers), f"{restarted} of {len(brokers)} are new processes")
        )

    def _move_partitions(self, _: Victims) -> None:
        """Four topics, each led by another broker than before, which gets a copy first where it has none."""
        moved, led = [], {}
        for topic in self._chance.sample(_TOPICS, _MOVES):
            leader = self._leaders.leader(self._name(topic))
            other = self._chance.choice(self._others(leader))
            self._leaders.move_leader(self._name(topic), other)
            led[self._name(topic)] = other
            moved.append(f"{topic} from {leader} to {other}")
        self._looks.append(lambda: Effect(self._are_led_as(led), ", ".join(moved)))

    def _are_led_as(self, led: Mapping[str, int]) -> bool:
        return all(self._leaders.leader(topic) == broker for topic, broker in led.items())

    def _shift_clock(self, broker: int, milliseconds: int) -> None:
        """While the broker dates heartbeats: stepped as it works."""
        if broker not in self._several.clocks:
            self._looks.append(lambda: Effect(False, f"no clock was shifted: {why_no_shifted_clocks()}"))
            return
        self._leaders.move_leader(self._name(HEARTBEATS), broker)
        self._undo.append(lambda: self._set_right(broker))
        self._several.clocks[broker].shift(milliseconds)
        deadline_s = time.monotonic() + _DATED_S
        while not (dated := self._dated(milliseconds)) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        said = f"broker {broker} dated heartbeats {'' if dated else 'NOT '}{milliseconds / HOUR_MS:+.0f} h"
        self._looks.append(lambda: Effect(dated, said))

    def _set_right(self, broker: int) -> None:
        """Set its clock right, and start it again: Kafka measures the wait before it connects again by the wall clock.

        A broker whose clock is set back by an hour may connect to nobody for that hour, as after a wrong clock in life.
        """
        self._several.clocks[broker].shift(0)
        self._broker(broker).stop()
        self._broker(broker).start()

    def _dated(self, milliseconds: int) -> bool:
        """Whether one of the last heartbeats is dated by a clock that is shifted so far, to half an hour."""
        now_ms = time.time() * 1_000
        shifts_ms = (record.append_time_ms - now_ms for record in last_heartbeats(self._cluster))
        return any(abs(shift_ms - milliseconds) < HOUR_MS / 2 for shift_ms in shifts_ms)

    def _set_clock_ahead(self, _: Victims) -> None:
        self._shift_clock(self._any_broker(), HOUR_MS)

    def _set_clock_behind(self, _: Victims) -> None:
        self._shift_clock(self._any_broker(), -HOUR_MS)

    def _move_between_clocks(self, victims: Victims) -> None:
        ahead, behind = self._chance.sample(sorted(self._several.brokers.kafka.brokers), 2)
        self._shift_clock(ahead, HOUR_MS)
        self._shift_clock(behind, -HOUR_MS)
        self._move_partitions(victims)

    def _set_lease_store_back(self, _: Victims) -> None:
        self._several.copy_lease_store()
        time.sleep(self._chance.uniform(1.0, 5.0))
        lost = self._several.fail_lease_store_over()
        self._looks.append(lambda: Effect(lost > 0, f"the copy lacks {lost} bytes of writes"))

    def _others(self, broker: int) -> list[int]:
        return sorted(set(self._several.brokers.kafka.brokers) - {broker})

    def _name(self, topic: str) -> str:
        return self._cluster.real.cluster.topic(topic)

    _broker_actions: Mapping[BrokerFaultKind, Callable[["BrokerInjector", Victims], None]] = {
        BrokerFaultKind.DECISIONS_KILLED: _kill_decisions,
        BrokerFaultKind.DECISIONS_PAUSED: _pause_decisions,
        BrokerFaultKind.DECISIONS_ISOLATED: _isolate_decisions,
        BrokerFaultKind.DECISIONS_AND_LEADER_KILLED: _kill_decisions_and_leader,
        BrokerFaultKind.DECISIONS_PAUSED_LEADER_KILLED: _pause_decisions_kill_leader,
        BrokerFaultKind.DECISIONS_ISOLATED_LEADER_KILLED: _isolate_decisions_kill_leader,
        BrokerFaultKind.DEPOSED_ASKED_FIRST: _ask_deposed_first,
        BrokerFaultKind.COORDINATOR_KILLED: _kill_coordinator,
        BrokerFaultKind.TOO_FEW_COPIES: _leave_too_few_copies,
        BrokerFaultKind.BROKER_SILENT: _lose_packets,
        BrokerFaultKind.CLOCK_AHEAD: _set_clock_ahead,
        BrokerFaultKind.CLOCK_BEHIND: _set_clock_behind,
        BrokerFaultKind.CLOCKS_APART: _move_between_clocks,
        BrokerFaultKind.PARTITIONS_MOVED: _move_partitions,
        BrokerFaultKind.BROKERS_RESTARTED: _restart_brokers,
        BrokerFaultKind.DISK_FULL: _fill_disk,
        BrokerFaultKind.LEADER_WITHOUT_ONE_BROKER: _cut_leader_from_one_broker,
        BrokerFaultKind.NODE_WITHOUT_TABLE: _cut_node_from_table,
        BrokerFaultKind.LEASE_STORE_OLDER: _set_lease_store_back,
        BrokerFaultKind.LOAD_FOLLOWER_KILLED: _kill_load_follower,
    }
