"""Agents that hand bundles off: their calls, their heartbeats and their requests, with a service that may hang."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.codec.inputs import decode_input
from controlplane.config import HEARTBEATS, MEMBERSHIP, ROUTING_TABLE, ClusterConfig
from controlplane.core.bundles.bundle import Bundle, equal_bundles
from controlplane.core.bundles.ownership_channel.live_rows import (
    assigning,
    children_of,
    opened,
    releasing,
    splitting,
    taken,
)
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.core.bundles.reports import BundleStep
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL, HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.inputs import Heartbeat, NodeJoined
from controlplane.core.membership.node import NodeStatus
from controlplane.core.session.node_session import SessionSettings, SessionState
from controlplane.core.values.identifiers import Epoch
from controlplane.node import Access, FencingToken, HandoffSettings, NodeAgent, NodeCallbacks, TopicLoad
from controlplane.node.description import NodeDescription
from controlplane.testing import MemoryBroker, MemoryEventWriter, MemoryLogReader, MemoryTransactionalWriter
from controlplane.testing.memory_controllers import WaitingLogReader
from tests.helpers.polling import poll_until
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
SESSION = SessionSettings(heartbeat_interval_ms=5_000, join_retry_ms=50)
"""Heartbeats that come sooner than after seconds report steps."""
SETTINGS = HandoffSettings(accepted_limit_ms=200, release_limit_ms=300, open_limit_ms=300, end_limit_ms=2_000)
WHOLE = equal_bundles("kv", 1)[0].bundle_id
SILENCE_LIMIT_MS = 30_000


class Service(NodeCallbacks):
    """Keeps what it hears, and hangs in calls for which a gate is closed."""

    def __init__(self) -> None:
        """Hang nowhere."""
        self.heard: list[str] = []
        self.tokens: list[FencingToken] = []
        self.topics: Sequence[TopicLoad] = ()
        self._gates: dict[str, threading.Event] = {}
        self.error: Exception | None = None

    def hang_in(self, what: str) -> Callable[[], None]:
        """Let calls of a name hang, or with a bundle's id behind it those for it, until the answer is called."""
        gate = self._gates[what] = threading.Event()
        return gate.set

    def _hear(self, what: str, bundle_id: str) -> None:
        self.heard.append(heard := f"{what} {bundle_id}")
        for gate in (self._gates.get(what), self._gates.get(heard)):
            assert gate is None or gate.wait(30)
        if self.error is not None:
            raise self.error

    def on_bundle_preparing(self, bundle: Bundle) -> None:
        """Hear."""
        self._hear("preparing", bundle.bundle_id)

    def on_bundle_assigned(self, bundle: Bundle, token: FencingToken) -> None:
        """Hear."""
        self.tokens.append(token)
        self._hear("assigned", bundle.bundle_id)

    def on_bundle_releasing(self, bundle: Bundle) -> None:
        """Hear."""
        self._hear("releasing", bundle.bundle_id)

    def on_bundle_released(self, bundle_id: str, bundle: Bundle | None) -> None:
        """Hear, with the node that clients are sent to."""
        self._hear(f"released to {None if bundle is None else bundle.owner}", bundle_id)

    def on_bundle_split(self, parent: Bundle, children: Sequence[Bundle]) -> None:
        """Hear."""
        self._hear(f"split into {len(children)}", parent.bundle_id)

    def topics_of_bundle(self, bundle: Bundle) -> Sequence[TopicLoad]:
        """Answer."""
        self._hear("topics", bundle.bundle_id)
        return self.topics


class Member:
    """An agent of node ``n`` that is a member, and the hand-written table that it reads.

    Attributes:
        agent: the agent.
        service: its callbacks.
        rows: the bundles as they were written last.
    """

    def __init__(self, feature_level: int = HANDOFFS_FROM_LEVEL, count: int = 1) -> None:
        """Start the agent and admit it."""
        broker = MemoryBroker(SystemClock())
        for topic in (ROUTING_TABLE, MEMBERSHIP, HEARTBEATS):
            broker.create_topic(CLUSTER.topic(topic))
        self._broker = broker
        self.feed = TableFeed(MemoryTransactionalWriter(CLUSTER, broker))
        settings = TableSettings(4, 2, HashFunction.CRC32C, SILENCE_LIMIT_MS, feature_level)
        self.feed._stage(settings)  # noqa: SLF001 - no other test changes the settings
        self.feed.node("a").commit()
        self.rows = {
            each.bundle_id: replace(each, state=OwnershipState.FREE, version=1) for each in equal_bundles("kv", count)
        }
        self.service = Service()
        self.agent = NodeAgent(
            writer=MemoryEventWriter(CLUSTER, broker),
            reader=WaitingLogReader(CLUSTER, broker),
            clock=SystemClock(),
            threads=SystemThreads(),
            node=NodeDescription("n"),
            cluster=CLUSTER.name,
            callbacks=self.service,
            settings=SESSION,
            handoff=SETTINGS,
            registry=CollectorRegistry(),
        ).start()
        poll_until(self._joined)
        self.admit()

    def admit(self, status: NodeStatus = NodeStatus.ACTIVE) -> None:
        """Write the node's row, and wait until the agent serves by it."""
        self.feed.node("n", status, incarnation=self._joined()[-1].incarnation).commit()
        if status is NodeStatus.ACTIVE:
            poll_until(lambda: self.agent._session.serve_until_ms > 0)  # noqa: SLF001 - it holds nothing to ask for

    def write(self, change: Callable[..., Bundle], *args: object, bundle_id: str = WHOLE) -> None:
        """Write the row that follows by a function of ``live_rows``."""
        row = self.rows[bundle_id] = change(self.rows[bundle_id], *args, Epoch(self.feed.epoch + 1))
        self.feed.bundle(row).commit()

    def split(self, *bounds: int) -> None:
        """Let children take the place of the bundle."""
        parent = self.rows.pop(WHOLE)
        self.feed._staged[f"main/bundle/{WHOLE}"] = None  # noqa: SLF001 - a tombstone
        for child in children_of(parent, bounds, Epoch(self.feed.epoch + 1)):
            self.rows[child.bundle_id] = child
            self.feed.bundle(child)
        self.feed.commit()

    def own(self) -> None:
        """Give the bundle to the node, which opens it."""
        self.write(taken, "n")
        poll_until(lambda: self.access() is Access.ACCEPT)

    def access(self, key: str = "key") -> Access:
        """The answer for a key."""
        return self.agent.bundle_of("kv", key).access

    def beats(self) -> list[Heartbeat]:
        """The heartbeats so far."""
        return [each for each in self._inputs(HEARTBEATS) if isinstance(each, Heartbeat)]

    def steps(self) -> list[BundleStep]:
        """The steps in the last heartbeat, each for the row that was written last."""
        steps = self.beats()[-1].bundle_steps
        return [each.step for each in steps if each.version == self.rows[each.bundle_id].version]

    def _joined(self) -> list[NodeJoined]:
        return [each for each in self._inputs(MEMBERSHIP) if isinstance(each, NodeJoined)]

    def _inputs(self, topic: str) -> list[object]:
        reader = MemoryLogReader(CLUSTER, self._broker)
        reader.assign(reader.start_offsets(topic))
        return [decode_input(topic, record).payload for record in reader.poll(100_000, 0).records]


@pytest.fixture
def member(request: pytest.FixtureRequest) -> Iterator[Member]:
    """A member with one bundle of which it is not the owner; the level is the fixture's parameter."""
    made = Member(getattr(request, "param", HANDOFFS_FROM_LEVEL))
    yield made
    made.agent.stop(drain=False)


def test_a_node_takes_part_in_handoffs_from_the_level_on(member: Member) -> None:
    """Its join says so."""
    assert all(join.hands_off for join in member._joined())  # noqa: SLF001 - the fixture's own


@pytest.mark.parametrize("member", [HANDOFFS_FROM_LEVEL - 1], indirect=True)
def test_below_the_level_nothing_is_said_of_handoffs(member: Member) -> None:
    """Controllers of the release before could not read it."""
    member.rows[WHOLE] = replace(member.rows[WHOLE], owner="n", state=None)
    member.feed.bundle(member.rows[WHOLE]).commit()
    poll_until(lambda: member.access() is Access.ACCEPT)
    assert not any(join.hands_off for join in member._joined())  # noqa: SLF001 - the fixture's own
    assert not any(beat.bundle_steps for beat in member.beats())


def test_each_step_is_reported_at_once(member: Member) -> None:
    """The leader waits for it, and the next heartbeat of its own accord would come seconds later."""
    member.write(assigning, "n")
    poll_until(lambda: member.steps() == [BundleStep.OPENED], 3)
    assert member.access() is Access.MIGRATING
    member.write(opened)
    poll_until(lambda: member.access() is Access.ACCEPT)
    beats = len(member.beats())
    member.write(releasing, "a")
    poll_until(lambda: member.steps() == [BundleStep.RELEASED], 3)
    assert len(member.beats()) == beats + 1
    assert member.agent.bundle_of("kv", "key").ask == "a"
    member.write(assigning, "a")
    member.write(opened)
    poll_until(lambda: len(member.service.heard) == 3)
    assert member.service.heard == [f"assigned {WHOLE}", f"releasing {WHOLE}", f"released to a {WHOLE}"]
    assert len(member.beats()) == beats + 1


def test_steps_that_are_done_together_share_heartbeats() -> None:
    """A node that takes very many bundles at once must not send one for each."""
    member = Member(count=60)
    for bundle_id, row in member.rows.items():
        member.rows[bundle_id] = assigning(row, "n", Epoch(member.feed.epoch + 1))
        member.feed.bundle(member.rows[bundle_id])
    beats = len(member.beats())
    member.feed.commit()
    poll_until(lambda: len(member.steps()) == 60, 3)
    assert len(member.beats()) - beats < 20
    member.agent.stop(drain=False)


def test_a_release_waits_for_requests_and_their_right_lasts(member: Member) -> None:
    """New ones are refused at once, and sent to the next owner."""
    member.own()
    with member.agent.serve("kv", b"key") as call:
        assert call.access is Access.ACCEPT
        assert call.bundle == member.rows[WHOLE]
        assert call.token == member.agent.bundle_of("kv", "key").token
        member.write(releasing, "a")
        poll_until(lambda: member.access() is Access.MOVED)
        with member.agent.serve("kv", "key") as refused:
            assert (refused.access, refused.ask) == (Access.MOVED, "a")
        assert not refused.held
        assert call.held
        assert len(member.service.heard) == 1
    assert call.held
    poll_until(lambda: member.steps() == [BundleStep.RELEASED], 3)


def test_a_request_that_takes_longer_than_a_release_waits_is_void(member: Member) -> None:
    """The next owner may have accepted others by then."""
    member.own()
    with member.agent.serve("kv", "key") as call:
        member.write(releasing, "a")
        poll_until(lambda: member.steps() == [BundleStep.RELEASED], 3)
        assert not call.held
    assert not call.held
    with pytest.raises(RuntimeError, match="the context was not entered"):
        _ = member.agent.serve("kv", "key").access


def test_a_request_that_ends_while_the_session_may_not_serve_is_not_held(member: Member) -> None:
    """The node cannot know whether another one owns the bundle already."""
    member.own()
    with member.agent.serve("kv", "key") as call:
        member.admit(NodeStatus.FENCED)
        poll_until(lambda: member.agent.state is not SessionState.ACTIVE)
    assert not call.held
    assert member.access() is Access.MOVED


def test_a_hung_release_is_reported_at_its_limit_and_holds_nothing_up(member: Member) -> None:
    """Table, heartbeats and other bundles go on; a line in the log says which callback it is."""
    member.own()
    goes_on = member.service.hang_in("releasing")
    with capture_logs() as lines:
        member.write(releasing, "a")
        poll_until(lambda: member.steps() == [BundleStep.RELEASED], 3)
    assert {line["callback"] for line in lines if "takes too long" in str(line["event"])} == {"on_bundle_releasing"}
    assert member.access() is Access.MOVED
    member.write(taken, "a")
    poll_until(lambda: member.agent.bundle_of("kv", "key").bundle == member.rows[WHOLE])
    goes_on()
    poll_until(lambda: member.service.heard[-1] == f"released to a {WHOLE}")


def test_a_bundle_whose_opening_hangs_is_migrating(member: Member) -> None:
    """Until the call returns; the agent lives."""
    goes_on = member.service.hang_in("assigned")
    member.write(taken, "n")
    poll_until(lambda: member.service.heard)
    assert member.access() is Access.MIGRATING
    member.agent.check()
    goes_on()
    poll_until(lambda: member.access() is Access.ACCEPT)


def test_hung_calls_leave_no_growing_number_of_threads_behind() -> None:
    """Beyond the bound bundles are released without their service."""
    member = Member(count=120)
    goes_on = member.service.hang_in("assigned")
    for bundle_id, row in member.rows.items():
        member.rows[bundle_id] = taken(row, "n", Epoch(member.feed.epoch + 1))
        member.feed.bundle(member.rows[bundle_id])
    member.feed.commit()
    most = SETTINGS.calls_at_once + SETTINGS.hung_calls_at_most

    def hung() -> int:
        return sum(1 for each in threading.enumerate() if each.name == "node-bundle")

    poll_until(lambda: hung() >= SETTINGS.hung_calls_at_most)
    last = max(member.rows)
    member.write(releasing, "a", bundle_id=last)
    poll_until(lambda: member.steps() == [BundleStep.RELEASED], 5)
    assert hung() <= most
    goes_on()
    poll_until(lambda: len(member.service.heard) == 119)
    poll_until(lambda: not hung())
    member.agent.stop(drain=False)


def test_a_split_serves_on_while_the_service_is_still_told_of_it(member: Member) -> None:
    """The parent's place is taken without a gap, and a request that was accepted for it keeps its right."""
    member.own()
    goes_on = member.service.hang_in("split into 2")
    member.service.topics = [TopicLoad("key"), TopicLoad("another key")]
    member.write(splitting, (), "topic_count_equally_divide")
    poll_until(lambda: member.steps() == [BundleStep.DIVIDED], 3)
    (report,) = member.beats()[-1].bundle_steps
    low, high = sorted(map(bundle_hash, ("key", "another key")))
    assert low < report.bounds[0] <= high

    def serves_until_the_service_hears() -> bool:
        assert {member.access(key) for key in ("key", "another key")} == {Access.ACCEPT}
        return f"split into 2 {WHOLE}" in member.service.heard

    with member.agent.serve("kv", "key") as call:
        member.split(*report.bounds)
        poll_until(serves_until_the_service_hears)
        assert member.agent.bundle_of("kv", "key").bundle != call.bundle
    assert call.held
    goes_on()


def test_a_service_without_topics_keeps_a_bundle_whole(member: Member) -> None:
    """It reports that there are no bounds, so that the leader does not wait for any."""
    member.own()
    member.write(splitting, (), "flow_or_qps_equally_divide")
    poll_until(lambda: member.steps() == [BundleStep.DIVIDED], 3)
    assert member.beats()[-1].bundle_steps[0].bounds == ()


def test_an_error_in_a_callback_for_a_bundle_ends_the_agent(member: Member) -> None:
    """A node whose service is broken must not claim to be alive. Nothing more is asked of it for this bundle."""
    member.service.error = ZeroDivisionError()
    member.write(taken, "n")
    poll_until(lambda: member.agent._shared.failure)  # noqa: SLF001 - check raises it
    with pytest.raises(ZeroDivisionError):
        member.agent.check()
    member.service.error = None
    member.agent.stop()
    assert member.service.heard == [f"assigned {WHOLE}"]


def test_a_node_that_stops_closes_what_it_still_has_before_it_leaves(member: Member) -> None:
    """Those who own it next need not wait for topics that are still open here."""
    member.own()
    member.agent.stop(drain=False)
    assert member.service.heard[1:] == [f"releasing {WHOLE}", f"released to None {WHOLE}"]
    assert member.agent.state is SessionState.LEFT


def test_a_node_that_is_superseded_closes_what_it_has(member: Member) -> None:
    """Another process of this node may own it by now."""
    member.own()
    incarnation = member._joined()[-1].incarnation  # noqa: SLF001 - the fixture's own
    member.feed.node("n", incarnation=incarnation + 1).commit()
    poll_until(lambda: len(member.service.heard) == 3)
    assert member.service.heard[1:] == [f"releasing {WHOLE}", f"released to None {WHOLE}"]
    assert member.agent.state is SessionState.SUPERSEDED


def test_stopping_takes_no_longer_than_its_limit_if_a_callback_hangs(member: Member) -> None:
    """The process has to be able to end."""
    member.own()
    goes_on = member.service.hang_in("releasing")
    clock = SystemClock()
    began_ms = clock.monotonic_ms()
    member.agent.stop(drain=False)
    assert clock.monotonic_ms() - began_ms < 2 * SETTINGS.end_limit_ms
    goes_on()
