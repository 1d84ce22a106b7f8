"""Two nodes and one slot: the real sessions, a log that counts silence in ticks, and a leader that fences and admits.

Time passes in steps of 100 ms for everybody at once; whatever else happens does so at any moment: a node's process
stalls, a heartbeat or its acknowledgement is late or never comes, a join arrives twice, a table is read late, ticks are
missing. The leader may be slow too, but it never takes a slot from a node that lives: that is a handoff, which tokens
protect and not this machine.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.session.messages import (
    ConfirmTable,
    DrainAsked,
    HeartbeatAcknowledged,
    LeaveAsked,
    SendHeartbeat,
    SendJoin,
    SessionAction,
    SessionEvent,
    TableChanged,
    TableConfirmed,
    TableRead,
)
from controlplane.core.session.node_session import (
    FINAL_STATES,
    NodeSession,
    SessionSettings,
    SessionState,
    SessionTrigger,
)
from controlplane.core.values.identifiers import Incarnation
from controlplane.core.values.machine import Woke
from tests.exploration.rows import session_row

STEP_MS: Final = 100
_NOW_MS: Final = 1_000_000
"""It is always now: as time passes, what was goes back. 0 is before everything."""
SILENCE_LIMIT_MS: Final = 300
_LONGEST_GAP_MS: Final = 200
_SETTINGS: Final = SessionSettings(heartbeat_interval_ms=100, join_retry_ms=200, self_fencing_margin_ms=100)
_TIMES: Final = frozenset(
    {
        "last_acknowledged_ms",
        "table_known_at_ms",
        "_member_since_ms",
        "_lost_at_ms",
        "_ask_at_ms",
        "_heartbeat_at_ms",
    }
)
_ALARMS: Final = frozenset({"_ask_at_ms", "_heartbeat_at_ms"})
_MEMBERS: Final = (NodeStatus.ACTIVE, NodeStatus.DRAINING)


class Session(NamedTuple):
    """A session's memory, all its times counted from now."""

    state: SessionState
    incarnation: Incarnation
    memory: tuple[tuple[str, object], ...]

    def thawed(self) -> "_Watched":
        """The machine in this state."""
        return _Watched(self.memory)

    def later(self) -> "Session":
        """A step of time on."""
        return self._replace(memory=tuple((name, _later(name, value)) for name, value in self.memory))

    def told(self, events: tuple[SessionEvent, ...]) -> "Told":
        """After these events, which happen at once."""
        machine = self.thawed()
        actions = tuple(action for event in events for action in machine.on_event(_NOW_MS, event).actions)
        return Told(_frozen(machine), actions, frozenset(machine.rows))


def _frozen(session: NodeSession) -> Session:
    memory = tuple((name, value) for name, value in vars(session).items() if name not in {"_settings", "rows"})
    return Session(session.state, session.incarnation, memory)


def _later(name: str, value: object) -> object:
    if name not in _TIMES or not isinstance(value, int):
        return value
    return max(value - STEP_MS, _NOW_MS if name in _ALARMS else 0)


class Entry(NamedTuple):
    """What the log says of a node, and how long it has been silent there."""

    status: NodeStatus | None = None
    incarnation: Incarnation = 0
    silent_for_ms: int = 0
    since_tick_ms: int = 0

    def later(self) -> "Entry":
        """A step of time on."""
        return self._replace(since_tick_ms=min(self.since_tick_ms + STEP_MS, _LONGEST_GAP_MS))

    def ticked(self) -> "Entry":
        """A tick was appended: what passed since the last one, or since the heartbeat, counts, up to a limit."""
        silent_for_ms = self.silent_for_ms + self.since_tick_ms
        return self._replace(silent_for_ms=min(silent_for_ms, SILENCE_LIMIT_MS), since_tick_ms=0)

    def row(self, number: int) -> NodeRow | None:
        """The node's row in the table."""
        if self.status in {None, NodeStatus.LEFT}:
            return None
        return NodeRow(f"n{number}", self.incarnation, NodeRole.DATA, self.status, (), "", 1, "")


class Node(NamedTuple):
    """A node's process with what it has under way.

    Attributes:
        session: its machine.
        row: its own row in the table that it has read last.
        owns: whether that table gives it the slot.
        heartbeat: when the heartbeat on its way was sent.
        acknowledged: when the heartbeat was sent whose acknowledgement is on its way.
        joins: whether a join record is on its way; it stays, because it may have been sent twice.
        asked_at: since when it reads the table to confirm it.
    """

    session: Session
    row: NodeRow | None = None
    owns: bool = False
    heartbeat: int | None = None
    acknowledged: int | None = None
    joins: bool = False
    asked_at: int | None = None

    def later(self) -> "Node":
        """A step of time on."""
        return self._replace(
            session=self.session.later(),
            heartbeat=None if self.heartbeat is None else self.heartbeat - STEP_MS,
            acknowledged=None if self.acknowledged is None else self.acknowledged - STEP_MS,
            asked_at=None if self.asked_at is None else self.asked_at - STEP_MS,
        )


class World(NamedTuple):
    """The nodes, what the log says of them, and whose the slot is."""

    nodes: tuple[Node, ...]
    entries: tuple[Entry, ...]
    owner: int | None = None

    def with_node(self, number: int, node: Node) -> "World":
        """One node is otherwise."""
        return self._replace(nodes=(*self.nodes[:number], node, *self.nodes[number + 1 :]))

    def with_entry(self, number: int, entry: Entry) -> "World":
        """The log says something else of one node; the slot stays where it is, or goes to a member if there is one."""
        entries = (*self.entries[:number], entry, *self.entries[number + 1 :])
        members = [other for other, one in enumerate(entries) if one.status in _MEMBERS]
        owner = self.owner if self.owner in members else next(iter(members), None)
        return World(self.nodes, entries, owner)


class NodeWay(NamedTuple):
    """Something that can happen: what it is called, what it leads to, and which rows of the table it used."""

    name: str
    after: World
    rows: frozenset[str] = frozenset()


class Told(NamedTuple):
    """What events make of a session, what it wants done, and which rows of its table that used."""

    session: Session
    actions: tuple[SessionAction, ...]
    rows: frozenset[str]


class _Watched(NodeSession):
    """The real machine; it notes which rows of its table it uses."""

    def __init__(self, memory: tuple[tuple[str, object], ...]) -> None:
        super().__init__(_SETTINGS)
        vars(self).update(memory)
        self.rows: set[str] = set()

    def _move(self, now_ms: int, trigger: SessionTrigger) -> None:
        self.rows.add(session_row(self.state, trigger))
        super()._move(now_ms, trigger)


class Nodes:
    """Everything that some nodes and their leader can do. What a session makes of an event is found out once."""

    def __init__(self, count: int, *, in_all_ways: bool) -> None:
        """Nothing has been told to any session.

        Args:
            count: of nodes.
            in_all_ways: they are also drained, leave, and are superseded by later processes of the same name.
        """
        self._count = count
        self._in_all_ways = in_all_ways
        self._told: dict[tuple[Session, tuple[SessionEvent, ...]], Told] = {}
        self._serves: dict[Session, bool] = {}

    def first(self) -> World:
        """All nodes have started, and the log is empty."""
        return World((Node(_frozen(NodeSession(_SETTINGS))),) * self._count, (Entry(),) * self._count)

    def members(self) -> World:
        """All nodes are members, the first has the slot, and no heartbeat is acknowledged yet."""
        return self._after(self.first(), "reads the table for the first time", "is admitted", "reads the table")

    def serving(self) -> World:
        """All nodes serve, and their joins may arrive again."""
        heartbeat = ("its heartbeat is appended", "hears of its heartbeat", "reads the table to its end")
        return self._after(self.members(), *heartbeat)

    def _after(self, world: World, *names: str) -> World:
        for number in range(self._count):
            for name in names:
                world = next(way.after for way in self.ways(world) if way.name == f"n{number}: {name}")
        return world

    def broken(self, world: World) -> str:
        """What must not be in this world; empty if nothing is wrong."""
        serving = [number for number, node in enumerate(world.nodes) if self._is_serving(node.session)]
        for number in serving:
            entry, incarnation = world.entries[number], world.nodes[number].session.incarnation
            if entry.incarnation <= incarnation and entry.status not in _MEMBERS:
                return f"n{number} serves, and the log says that it is {entry.status and entry.status.value}"
        if sum(world.nodes[number].owns for number in serving) > 1:
            return "both nodes serve the slot"
        return ""

    def ways(self, world: World) -> Iterator[NodeWay]:
        """What can happen next."""
        nodes = tuple(node.later() for node in world.nodes)
        silent = tuple(entry.later() for entry in world.entries)
        yield NodeWay("100 ms pass", World(nodes, silent, world.owner))
        yield NodeWay("100 ms pass, and a tick", World(nodes, tuple(entry.ticked() for entry in silent), world.owner))
        for number in range(len(world.nodes)):
            for name, after in self._ways_of_log(world, number):
                yield NodeWay(f"n{number}: {name}", after)
            for name, before, events in self._ways_of_node(world, number):
                after, rows = self._tell(before, number, events)
                yield NodeWay(f"n{number}: {name}", after, rows)

    def _ways_of_log(self, world: World, number: int) -> Iterator[tuple[str, World]]:
        node, entry = world.nodes[number], world.entries[number]
        incarnation = node.session.incarnation
        is_member = entry.status in _MEMBERS
        if node.heartbeat is not None:
            sent = node._replace(heartbeat=None)
            appended = world.with_node(number, sent._replace(acknowledged=node.heartbeat))
            heard = entry._replace(silent_for_ms=0, since_tick_ms=0) if is_member else entry
            yield "its heartbeat is appended", appended.with_entry(number, heard)
            yield "its heartbeat is lost", world.with_node(number, sent)
        if not incarnation or entry.incarnation > incarnation:
            return
        if node.joins and not is_member:
            yield "is admitted", world.with_entry(number, Entry(NodeStatus.ACTIVE, incarnation))
        if is_member and entry.silent_for_ms >= SILENCE_LIMIT_MS:
            yield "is fenced", world.with_entry(number, entry._replace(status=NodeStatus.FENCED))
        if not self._in_all_ways:
            return
        if entry.status is NodeStatus.ACTIVE:
            yield "is drained", world.with_entry(number, entry._replace(status=NodeStatus.DRAINING))
        if entry.status is NodeStatus.DRAINING:
            yield "is no longer drained", world.with_entry(number, entry._replace(status=NodeStatus.ACTIVE))
        if is_member and node.session.state is SessionState.LEFT:
            yield "is removed", world.with_entry(number, entry._replace(status=NodeStatus.LEFT))
        yield "is superseded by a later process", world.with_entry(number, Entry(NodeStatus.ACTIVE, incarnation + 1))

    def _ways_of_node(self, world: World, number: int) -> Iterator[tuple[str, World, tuple[SessionEvent, ...]]]:
        node, state = world.nodes[number], world.nodes[number].session.state
        if state in FINAL_STATES:
            return
        row, owns = world.entries[number].row(number), world.owner == number
        read = world.with_node(number, node._replace(row=row, owns=owns))
        if self._in_all_ways:
            yield "leaves", world, (LeaveAsked("test"),)
        if state is SessionState.STARTING:
            first = TableRead(row.incarnation if row else 0, 1)
            yield "reads the table for the first time", read, (first, TableChanged(row, SILENCE_LIMIT_MS))
            return
        yield "wakes", world, (Woke(),)
        if self._in_all_ways:
            yield "drains", world, (DrainAsked("test"),)
        if (row, owns) != (node.row, node.owns):
            yield "reads the table", read, (TableChanged(row, SILENCE_LIMIT_MS),)
        if node.asked_at is not None:
            confirmed = read.with_node(number, read.nodes[number]._replace(asked_at=None))
            events = (TableChanged(row, SILENCE_LIMIT_MS), TableConfirmed(node.asked_at))
            yield "reads the table to its end", confirmed, events
        if node.acknowledged is not None:
            heard = world.with_node(number, node._replace(acknowledged=None))
            yield "hears of its heartbeat", heard, (HeartbeatAcknowledged(node.acknowledged),)

    def _is_serving(self, session: Session) -> bool:
        serving = self._serves.get(session)
        if serving is None:
            serving = self._serves[session] = session.thawed().serve_until_ms > _NOW_MS
        return serving

    def _tell(self, world: World, number: int, events: tuple[SessionEvent, ...]) -> tuple[World, frozenset[str]]:
        """The node's machine is told, and what it wants to send is on its way."""
        node = world.nodes[number]
        told = self._told.get((node.session, events))
        if told is None:
            told = self._told[node.session, events] = node.session.told(events)
        for action in told.actions:
            match action:
                case SendHeartbeat(sent_at_ms=sent_at_ms):
                    node = node._replace(heartbeat=sent_at_ms if node.heartbeat is None else node.heartbeat)
                case ConfirmTable(asked_at_ms=asked_at_ms):
                    node = node._replace(asked_at=asked_at_ms)
                case SendJoin():
                    node = node._replace(joins=True)
                case _:
                    pass  # the log may say at any time that a node drains or has left, whoever asked for it
        return world.with_node(number, node._replace(session=told.session)), told.rows
