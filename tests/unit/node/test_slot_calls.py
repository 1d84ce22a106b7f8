"""Agents whose service hangs in a call for slots: the node goes on reading, serving and handing over."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.core.session.node_session import SessionSettings, SessionState
from controlplane.node import Access, HandoffSettings, NodeAgent, NodeCallbacks, SlotChanged, SlotGained, SlotLost
from controlplane.node.callbacks import SlotReleasing
from controlplane.node.description import NodeDescription
from controlplane.node.draining import DrainOutcome
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.polling import poll_until

SETTINGS = SessionSettings(heartbeat_interval_ms=100, join_retry_ms=200, self_fencing_margin_ms=200)
LIMITS = HandoffSettings(accepted_limit_ms=100, release_limit_ms=300, open_limit_ms=300, end_limit_ms=1_000)


class Service(NodeCallbacks):
    """Keeps what it hears, marks every gained slot as ready, and hangs where the test says so."""

    agent: NodeAgent

    def __init__(self) -> None:
        """Hang nowhere."""
        self.heard: list[tuple[str, tuple[int, ...]]] = []
        self.epochs: list[tuple[int, int]] = []
        self.goes_on = threading.Event()
        self.hangs_in: str = ""

    def _hear(self, what: str, slots: Sequence[SlotGained | SlotLost | SlotChanged | SlotReleasing]) -> None:
        self.heard.append((what, tuple(slot.slot_id for slot in slots)))
        table = self.agent.table
        if what != "releasing" and table is not None:
            self.epochs.append((slots[0].epoch, table.epoch))
        if self.hangs_in == what:
            assert self.goes_on.wait(60)

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Hear, and have the data."""
        self._hear("gained", gained)
        for slot in gained:
            self.agent.slot_ready(slot.slot_id, slot.epoch)

    def on_slots_lost(self, lost: Sequence[SlotLost]) -> None:
        """Hear."""
        self._hear("lost", lost)

    def on_slots_changed(self, changed: Sequence[SlotChanged]) -> None:
        """Hear."""
        self._hear("changed", changed)

    def on_slots_releasing(self, releasing: Sequence[SlotReleasing]) -> None:
        """Hear."""
        self._hear("releasing", releasing)

    def slots_of(self, what: str) -> set[int]:
        """The slots that were told so far."""
        return {slot_id for said, slot_ids in self.heard for slot_id in slot_ids if said == what}


class Pair:
    """A cluster with one controller, and services on their nodes."""

    def __init__(self, world: ObservedCluster, stack: ExitStack) -> None:
        """Begin without nodes."""
        self.world, self._stack = world, stack
        self.registry = CollectorRegistry()

    def start(self, node_id: str, service: "Service | WithoutSlots") -> NodeAgent:
        """An agent that joins; it is stopped at the end without draining."""
        service.agent = NodeAgent(
            writer=self.world.event_writer(),
            reader=self.world.reader(),
            clock=self.world.clock,
            threads=SystemThreads(),
            node=NodeDescription(node_id),
            cluster="test",
            callbacks=service,
            settings=SETTINGS,
            handoff=LIMITS,
            registry=self.registry,
        )
        self._stack.callback(lambda: service.agent.stop(drain=False))
        self._stack.callback(service.goes_on.set)
        return service.agent.start()

    def counted(self, metric: str, node_id: str) -> float:
        """What a node counted for slots."""
        labels = {"cluster": "test", "node": node_id, "of": "slot"}
        return self.registry.get_sample_value(f"controlplane_node_{metric}_total", labels) or 0

    def led_by(self, node_id: str) -> set[int]:
        """The slots that a node leads by the newest table."""
        return {slot_id for slot_id, leader in self.world.owners().items() if leader == node_id}


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A cluster without nodes."""
    with ObservedCluster() as world, ExitStack() as stack:
        world.start("c1")
        yield Pair(world, stack)


def test_a_service_is_asked_to_release_what_another_node_leads_next(pair: Pair) -> None:
    """It hears the row first, the release next, and then what came of it; each call sees the table of its epoch."""
    first, second = Service(), Service()
    agent = pair.start("n1", first)
    poll_until(lambda: all(agent.ownership(slot_id).access is Access.ACCEPT for slot_id in range(8)))
    pair.start("n2", second)
    poll_until(lambda: len(pair.led_by("n2")) == 4)
    moved = pair.led_by("n2")
    poll_until(lambda: all(second.agent.ownership(slot_id).access is Access.ACCEPT for slot_id in moved))
    assert first.slots_of("releasing") >= moved
    for slot_id in moved:
        said = [what for what, slot_ids in first.heard if slot_id in slot_ids]
        assert "changed" in said[: said.index("releasing")]
    assert all(of_call == shown for of_call, shown in first.epochs + second.epochs)


def test_a_release_in_which_the_service_hangs_ends_at_its_limit(pair: Pair) -> None:
    """The node refuses meanwhile, and goes on serving what it keeps."""
    first, second = Service(), Service()
    agent = pair.start("n1", first)
    poll_until(lambda: all(agent.ownership(slot_id).access is Access.ACCEPT for slot_id in range(8)))
    first.hangs_in = "releasing"
    with capture_logs() as lines:
        pair.start("n2", second)
        poll_until(lambda: first.slots_of("releasing"))
        hung = first.slots_of("releasing")
        assert {agent.ownership(slot_id).access for slot_id in hung} == {Access.MOVED}
        poll_until(lambda: hung <= pair.led_by("n2"))
        poll_until(lambda: any("released, without the service" in str(line["event"]) for line in lines))
    assert pair.counted("callbacks_hung", "n1") == 1
    kept = pair.led_by("n1")
    assert kept
    assert {agent.ownership(slot_id).access for slot_id in kept - hung} == {Access.ACCEPT}
    assert agent.state is SessionState.ACTIVE


def test_a_request_that_outlasts_a_release_is_voided_and_counted(pair: Pair) -> None:
    """Its limit is over before it ends: another node leads the slot by then."""
    agent = pair.start("n1", Service())
    poll_until(lambda: all(agent.ownership(slot_id).access is Access.ACCEPT for slot_id in range(8)))
    with ExitStack() as requests:
        calls = [requests.enter_context(agent.serve_slot(slot_id)) for slot_id in range(8)]
        pair.start("n2", Service())
        poll_until(lambda: len(pair.led_by("n2")) == 4)
    assert [call.held for call in calls].count(False) == pair.counted("requests_voided", "n1") == 4


def test_a_gain_in_which_the_service_hangs_stops_neither_the_node_nor_other_slots(pair: Pair) -> None:
    """Its slots stay migrating. What was decided since is reported when it has returned."""
    service = Service()
    service.hangs_in = "gained"
    agent = pair.start("n1", service)
    poll_until(lambda: service.slots_of("gained"))
    poll_until(lambda: {agent.ownership(slot_id).access for slot_id in range(8)} == {Access.MIGRATING})
    service.hangs_in = ""
    # Its slots are split meanwhile: the new ones are reported and served without those that hang.
    pair.world.intent("i1", "change_policy", slot_count="16")
    poll_until(lambda: service.slots_of("gained") == set(range(16)))
    poll_until(lambda: {agent.ownership(slot_id).access for slot_id in range(8, 16)} == {Access.ACCEPT})
    assert {agent.ownership(slot_id).access for slot_id in range(8)} == {Access.MIGRATING}
    assert agent.state is SessionState.ACTIVE
    service.goes_on.set()
    poll_until(lambda: {agent.ownership(slot_id).access for slot_id in range(16)} == {Access.ACCEPT})


def test_losses_are_reported_before_an_agent_ends(pair: Pair) -> None:
    """A service that hears of every loss can close what it has open."""
    first, second = Service(), Service()
    agent = pair.start("n1", first)
    poll_until(lambda: all(agent.ownership(slot_id).access is Access.ACCEPT for slot_id in range(8)))
    pair.start("n2", second)
    poll_until(lambda: len(pair.led_by("n2")) == 4)
    agent.stop()
    assert first.slots_of("lost") >= set(range(8))


class WithoutSlots(NodeCallbacks):
    """A service that stores nothing by slots, and does not care for them."""

    agent: NodeAgent
    goes_on = threading.Event()


def test_a_service_that_stores_nothing_by_slots_holds_up_no_drain(pair: Pair) -> None:
    """Its slots are ready at once: else the other nodes would wait for data that it never gets."""
    first = pair.start("n1", WithoutSlots())
    poll_until(lambda: first.slot_of("key").access is Access.ACCEPT)
    second = pair.start("n2", WithoutSlots())
    poll_until(lambda: second.table is not None and any(slot.leader == "n2" for slot in second.table.slots))
    assert first.stop().outcome is DrainOutcome.DONE
    assert second.slot_of("key").access is Access.ACCEPT
