"""A node never serves while the log says that it is fenced, whatever happens to its connection and its process."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.session.messages import (
    ConfirmTable,
    HeartbeatAcknowledged,
    SendHeartbeat,
    SendJoin,
    SessionEvent,
    TableChanged,
    TableConfirmed,
    TableRead,
)
from controlplane.core.session.node_session import TABLE_GOOD_FOR_AT_LEAST_MS, NodeSession, SessionSettings
from controlplane.core.values.machine import Woke

STEP_MS = 100
WALL_MS = 1_000_000


def row(status: NodeStatus) -> NodeRow:
    """The node's own row."""
    return NodeRow("n1", WALL_MS, NodeRole.DATA, status, (), "", 1, "")


@dataclass
class World:
    """A log, a leader that fences after the silence limit, and one node whose connection and process fail at will.

    The leader's clock is the log's: it goes on while only the node is cut off. The node read the table to its end last
    at ``read_ms``.
    """

    silence_limit_ms: int
    session: NodeSession = field(default_factory=lambda: NodeSession(SessionSettings()))
    now_ms: int = 0
    connected: bool = True
    runs: bool = True
    committed: list[NodeRow] = field(default_factory=list)
    seen: int = 0
    appended_ms: int | None = None
    queue: list[SendJoin | SendHeartbeat] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    confirmations: list[int] = field(default_factory=list)
    read_ms: int = 0

    @property
    def member(self) -> bool:
        """Whether the log says that the node is one."""
        return bool(self.committed) and self.committed[-1].status is NodeStatus.ACTIVE

    def deliver(self, event: SessionEvent) -> None:
        """Give the session an event and put what it wants to send into its queue."""
        output = self.session.on_event(self.now_ms, event)
        assert output.next_wake_at_ms is None or output.next_wake_at_ms > self.now_ms, "a driver would spin"
        for action in output.actions:
            if isinstance(action, ConfirmTable):
                self.confirmations.append(action.asked_at_ms)
            elif isinstance(action, SendJoin | SendHeartbeat):
                self.queue.append(action)

    def let_the_log_work(self) -> None:
        """The broker appends what reaches it; the leader admits and fences."""
        if self.connected:
            for action in self.queue:
                if isinstance(action, SendHeartbeat):
                    self.appended_ms = self.now_ms if self.member else self.appended_ms
                    self.acknowledged.append(action.sent_at_ms)
                elif not self.member:
                    self.committed.append(row(NodeStatus.ACTIVE))
                    self.appended_ms = self.now_ms
            self.queue.clear()
        if self.member and self.appended_ms is not None and self.now_ms - self.appended_ms > self.silence_limit_ms:
            self.committed.append(row(NodeStatus.FENCED))

    def let_the_node_work(self, *, reads_table: bool, hears_acknowledgements: bool) -> None:
        """The node's threads get what has arrived, in any of the orders that threads may have."""
        if hears_acknowledgements:
            acknowledged, self.acknowledged = self.acknowledged, []
            for sent_at_ms in acknowledged:
                self.deliver(HeartbeatAcknowledged(sent_at_ms))
        if reads_table and self.connected:
            confirmations, self.confirmations = self.confirmations, []
            for committed in self.committed[self.seen :]:
                self.deliver(TableChanged(committed, self.silence_limit_ms))
            self.seen = len(self.committed)
            self.read_ms = self.now_ms
            for asked_at_ms in confirmations:
                self.deliver(TableConfirmed(asked_at_ms))
        self.deliver(Woke())


limits = st.integers(500, 5_000)
turns = st.lists(
    st.fixed_dictionaries(
        {
            "steps": st.integers(1, 30),
            "connected": st.booleans(),
            "runs": st.booleans(),
            "reads_table": st.booleans(),
            "hears_acknowledgements": st.booleans(),
        }
    ),
    max_size=25,
)


@given(limits, turns)
@settings(max_examples=5 * settings().max_examples)
def test_a_fenced_node_does_not_serve(silence_limit_ms: int, drawn: list[dict[str, int]]) -> None:
    """Connections break, processes stall, threads lag: in no order does a node serve that the log has fenced."""
    world = World(silence_limit_ms)
    world.deliver(TableRead(0, WALL_MS))
    for turn in drawn:
        world.connected = bool(turn["connected"])
        for _ in range(turn["steps"]):
            world.now_ms += STEP_MS
            world.let_the_log_work()
            if turn["runs"]:
                world.let_the_node_work(
                    reads_table=bool(turn["reads_table"]),
                    hears_acknowledgements=bool(turn["hears_acknowledgements"]),
                )
            serves = world.now_ms < world.session.serve_until_ms
            assert world.member or not serves
            may_be_old_ms = max(silence_limit_ms, TABLE_GOOD_FOR_AT_LEAST_MS)
            assert world.now_ms - world.read_ms < may_be_old_ms or not serves, "its slots may have gone to others"
    assert world.session.incarnation == WALL_MS


@given(limits, turns)
@settings(max_examples=2 * settings().max_examples)
def test_a_node_whose_log_is_back_serves_again(silence_limit_ms: int, drawn: list[dict[str, int]]) -> None:
    """Whatever went wrong, three seconds of a working log make the node a serving member again."""
    world = World(silence_limit_ms)
    world.deliver(TableRead(0, WALL_MS))
    for turn in drawn:
        world.connected = bool(turn["connected"])
        for _ in range(turn["steps"]):
            world.now_ms += STEP_MS
            world.let_the_log_work()
            world.let_the_node_work(reads_table=bool(turn["reads_table"]), hears_acknowledgements=True)
    world.connected = True
    for _ in range(30):
        world.now_ms += STEP_MS
        world.let_the_log_work()
        world.let_the_node_work(reads_table=True, hears_acknowledgements=True)
    assert world.member
    assert world.session.serve_until_ms > world.now_ms
