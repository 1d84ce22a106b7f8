"""What an agent's heartbeats say, in which version, and what they take."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.adapters.system_threads import SystemThreads
from controlplane.codec import inputs
from controlplane.codec.framing import default_framing
from controlplane.config import HEARTBEATS, ClusterConfig
from controlplane.core.bundles.reports import BundleStatus
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.membership.inputs import Heartbeat
from controlplane.core.session.node_session import SessionState
from controlplane.core.slots.reports import GROUPS_FROM_LEVEL, SlotGroup
from controlplane.core.values.identifiers import Epoch
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.node import NodeAgent, NodeCallbacks, SlotGained
from controlplane.node.description import NodeDescription
from controlplane.ports import RawRecord
from controlplane.testing import MemoryEventWriter
from tests.helpers.polling import poll_until
from tests.helpers.published_world import PublishedWorld

CLUSTER = ClusterConfig("test")
POLICY = ClusterPolicy(slot_count=8, silence_limit_ms=20_000)


class Member:
    """An agent of a cluster whose decisions the test makes."""

    def __init__(self, feature_level: int, callbacks: NodeCallbacks | None = None) -> None:
        """Begin the cluster, start the agent, and admit it."""
        self.world = PublishedWorld(CLUSTER, POLICY, first_feature_level=feature_level)
        self.agent = NodeAgent(
            writer=MemoryEventWriter(CLUSTER, self.world.broker),
            reader=self.world.reader(),
            clock=self.world.clock,
            threads=SystemThreads(),
            node=NodeDescription("n1"),
            cluster=CLUSTER.name,
            callbacks=callbacks,
            registry=CollectorRegistry(),
        ).start()
        poll_until(lambda: self.agent.state is SessionState.JOINING)
        self.world.join("n1", incarnation=self.world.clock.wall_ms())
        self.world.run(300, ())
        poll_until(lambda: self.agent.state is SessionState.ACTIVE)
        poll_until(lambda: self.agent.table is not None and self.agent.table.epoch == self.world.state.epoch)

    def _beats(self) -> list[RawRecord]:
        reader = self.world.reader()
        reader.assign(reader.start_offsets(HEARTBEATS))
        return [record for record in reader.poll(100_000, 0).records if record.key == b"n1"]

    def beat(self) -> RawRecord:
        """The next heartbeat that is appended, after an interval of virtual time."""
        before = len(self._beats())
        self.world.run(1_000, ())
        poll_until(lambda: len(self._beats()) > before)
        return self._beats()[-1]

    def next_beat(self) -> tuple[str, Heartbeat]:
        """The next heartbeat that is sent from now on, with the version of its schema."""
        self.beat()  # one that waited for its acknowledgement may be appended now
        return read(self.beat())


def read(record: RawRecord) -> tuple[str, Heartbeat]:
    """A heartbeat with the version of its schema."""
    payload = inputs.decode_input(HEARTBEATS, record).payload
    assert isinstance(payload, Heartbeat)
    return str(default_framing().unframe(record.value or b"")[0].id), payload


@pytest.fixture
def member(request: pytest.FixtureRequest) -> Iterator[Member]:
    """An admitted agent; the level is the fixture's parameter."""
    made = Member(getattr(request, "param", FEATURE_LEVEL))
    yield made
    made.agent.stop(drain=False)


@pytest.mark.parametrize("member", [GROUPS_FROM_LEVEL - 1], indirect=True)
def test_below_the_level_a_heartbeat_is_one_that_older_controllers_read(member: Member) -> None:
    """They would refuse one of a newer version, and fence the node."""
    version, beat = member.next_beat()
    assert version == "Heartbeat.v1"
    assert [status.slot_id for status in beat.slot_statuses] == list(range(8))


def test_from_the_level_on_a_heartbeat_has_the_slots_in_groups(member: Member) -> None:
    """The level is in the table, and every controller that can read this log knows groups."""
    for slot_id in range(8):
        member.agent.slot_ready(slot_id)
    version, beat = member.next_beat()
    assert version == "Heartbeat.v2"
    assert beat.slot_statuses == ()
    assert [group.runs for group in beat.slot_groups] == [(0, 8)]


def test_a_heartbeat_says_what_has_changed_since_the_one_before(member: Member) -> None:
    """Groups are kept between heartbeats: each change has to show in the next one, and so does the time."""
    groups = [group._replace(last_sync_ms=0) for group in member.next_beat()[1].slot_groups]
    assert groups == [SlotGroup(ReplicaStatus.MIGRATING, 0, (0, 8))]
    member.agent.slot_ready(0)
    member.agent.slot_ready(1, synced_at_ms=5)
    for _ in range(2):
        beat = member.next_beat()[1]
        assert beat.slot_groups[:2] == (
            SlotGroup(ReplicaStatus.HEALTHY, beat.sent_at_ms, (0, 1)),
            SlotGroup(ReplicaStatus.HEALTHY, 5, (1, 1)),
        )
    member.agent.slot_ready(1, synced_at_ms=6)
    assert member.next_beat()[1].slot_groups[1].last_sync_ms == 6


@pytest.mark.parametrize("member", [GROUPS_FROM_LEVEL - 1], indirect=True)
def test_raising_the_level_changes_the_heartbeats_of_running_agents(member: Member) -> None:
    """No node has to be restarted for it."""
    assert member.next_beat()[0] == "Heartbeat.v1"
    member.world.ask("raise_feature_level", level=str(GROUPS_FROM_LEVEL), upgraded="c1")
    epoch = member.world.state.epoch
    poll_until(lambda: member.agent.table is not None and member.agent.table.epoch == epoch)
    assert member.next_beat()[0] == "Heartbeat.v2"


def test_times_of_syncs_that_do_not_fit_are_put_together_and_the_node_lives(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that ended here would leave its slots to others, which would end next."""
    for slot_id in range(4):
        member.agent.slot_ready(slot_id, synced_at_ms=100 - slot_id)
    with capture_logs() as lines:
        size_bytes = len(inputs.encode_input(member.next_beat()[1]))
        monkeypatch.setattr(inputs, "MAX_RECORD_BYTES", size_bytes - 1)
        records = [member.beat() for _ in range(2)]
        monkeypatch.undo()
        beats = [read(record)[1] for record in records]
        whole = member.next_beat()[1]
    together = (SlotGroup(ReplicaStatus.HEALTHY, 97, (0, 4)), beats[0].slot_groups[-1]._replace(runs=(4, 4)))
    assert [beat.slot_groups for beat in beats] == [together, together]
    assert len(whole.slot_groups) == 5
    assert sum("parts of those of slots" in str(line["event"]) for line in lines) == 1


@pytest.mark.parametrize("member", [GROUPS_FROM_LEVEL - 1], indirect=True)
def test_below_the_level_slots_that_are_not_ready_are_left_out_first(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that reports no slot counts as ready in each: the last copies of others would be given up for its own."""
    member.agent.slot_ready(3)
    size_bytes = len(inputs.encode_input(member.next_beat()[1]))
    monkeypatch.setattr(inputs, "MAX_RECORD_BYTES", size_bytes - 1)
    record = member.beat()
    monkeypatch.undo()
    assert [(each.slot_id, each.status) for each in read(record)[1].slot_statuses] == [(3, ReplicaStatus.HEALTHY)]


def test_statuses_of_bundles_are_left_out_before_those_of_slots(member: Member) -> None:
    """A node that owns very many bundles still shows which slots have their data: decisions need that, and no more."""
    book = member.agent._shared.bundles  # noqa: SLF001 - 10,000 bundles in a table would take the test a minute
    names = (f"tenant/namespace-{number:032}/0x00000000_0xffffffff" for number in range(10_000))
    book._statuses = tuple(BundleStatus(name, ReplicaStatus.HEALTHY) for name in names)  # noqa: SLF001
    with capture_logs() as lines:
        beats = [member.next_beat()[1] for _ in range(2)]
    assert [beat.bundle_statuses for beat in beats] == [(), ()]
    assert [group.runs for group in beats[-1].slot_groups] == [(0, 8)]
    assert sum("without the statuses of bundles" in str(line["event"]) for line in lines) == 1


def test_a_heartbeat_while_a_callback_runs_is_by_one_table() -> None:
    """The number of slots was doubled twice: the holdings are those of the last table, and so are the settings."""
    member = Member(FEATURE_LEVEL)
    shared = member.agent._shared  # noqa: SLF001 - the moment between two statements of the table's thread
    shown = shared.table
    assert shown is not None
    later = replace(
        shown,
        settings=replace(shown.settings, slot_count=16),
        slots=(*shown.slots, *(replace(slot, slot_id=slot.slot_id + 8) for slot in shown.slots)),
        epoch=Epoch(shown.epoch + 1),
    )
    shared.book.follow(later, member.agent._session.incarnation)  # noqa: SLF001
    _, beat = member.next_beat()
    assert beat.slot_settings is not None
    assert beat.slot_settings.slot_count == 16
    assert {slot_id for group in beat.slot_groups for slot_id in group.slot_ids} == set(range(16))
    member.agent.stop(drain=False)


class Held(NodeCallbacks):
    """Callbacks of a service that takes its time with slots that it gains later."""

    def __init__(self) -> None:
        """Hold nothing up before the test says so."""
        self.goes_on, self.is_held = threading.Event(), threading.Event()
        self.goes_on.set()

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Wait for the test."""
        self.is_held.set()
        assert self.goes_on.wait(30)


def test_doubling_the_slots_twice_in_a_row_ends_no_agent_whose_callback_runs() -> None:
    """Every heartbeat meanwhile is one that controllers accept, and the agent catches up afterwards."""
    callbacks = Held()
    member = Member(FEATURE_LEVEL, callbacks)
    callbacks.is_held.clear()
    callbacks.goes_on.clear()
    for slot_count in (16, 32):
        member.world.ask("change_policy", slot_count=str(slot_count))
        assert callbacks.is_held.wait(30)
        _, beat = member.next_beat()
        assert beat.slot_settings is not None
        reported = {slot_id for group in beat.slot_groups for slot_id in group.slot_ids}
        assert reported == set(range(beat.slot_settings.slot_count))
    callbacks.goes_on.set()
    poll_until(lambda: member.agent.table is not None and member.agent.table.settings.slot_count == 32)
    assert member.agent.state is SessionState.ACTIVE
    assert member.world.reasons() == []
    member.agent.stop(drain=False)
