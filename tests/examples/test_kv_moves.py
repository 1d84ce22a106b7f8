"""The key-value example without a network: no order of tables, PUTs, copies, fetches and deaths loses anything."""

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.membership.rows import NodeRow
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.table import Slot
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, Seq, Term
from examples.kv.moving import ADDRESS_NAME, Mover
from examples.kv.store import Refused, Row, SlotStore, Token, Value
from examples.serving.protocol import Connections, Message, Place, Unreachable

NAMES = ("a", "b", "c", "d")
SLOT = 0


_ANY = st.integers(min_value=0, max_value=7)


def _choose(which: int, nodes: list["Node"]) -> "Node":
    return nodes[which % len(nodes)]


class Wires(Connections):
    """Reaches the other stores by function call, over JSON as the wire would."""

    def __init__(self, nodes: dict[str, "Node"]) -> None:
        super().__init__()
        self._nodes = nodes
        self.unreachable: set[str] = set()

    def ask(self, place: Place, request: Message, timeout_s: float) -> Message:
        """The answer of the node whose name stands for the host."""
        if place[0] in self.unreachable:
            raise Unreachable(place[0])
        try:
            answer = self._nodes[place[0]].mover.answer(json.loads(json.dumps(request)))
        except Refused as refused:
            answer = {"status": refused.status, "epoch": refused.epoch}
        return dict[str, Any](json.loads(json.dumps(answer)))


class Node:
    """One process: a store, its mover, and how far it has read the tables."""

    def __init__(self, name: str, nodes: dict[str, "Node"], tables: list[RoutingTable], joined_epoch: int) -> None:
        self.name = name
        self.store = SlotStore()
        self.ready = False
        self._tables = tables
        self._joined_epoch = joined_epoch
        self._read = max(1, joined_epoch)  # the tables before that one
        self._held = False
        self.wires = Wires(nodes)
        self.mover = Mover(name, self.store, self.wires, lambda: tables[self._read - 1], self._complete)

    @property
    def unread(self) -> int:
        """How many tables it has not read."""
        return len(self._tables) - self._read

    @property
    def behind(self) -> bool:
        """Whether there are tables that it has not read."""
        return self.unread > 0

    @property
    def serves(self) -> bool:
        """Whether it answers clients."""
        try:
            self.store.get(SLOT, "any")
        except Refused:
            return False
        return True

    def read_table(self) -> None:
        """Follow the next table as the agent tells of it."""
        before, table = self._tables[self._read - 1], self._tables[self._read]
        self._read += 1
        slot, earlier = table.slots[SLOT], before.slots[SLOT]
        holds = self.name in slot.replicas and table.epoch >= self._joined_epoch
        if holds and not self._held:
            self.ready = False
            sources = dict.fromkeys([*earlier.replicas, *slot.replicas])
            self.mover.expect(table, {SLOT: [name for name in sources if name != self.name]})
        elif holds and slot != earlier and not self.ready:
            sources = dict.fromkeys([*earlier.replicas, *slot.replicas])
            self.mover.expect(table, {SLOT: [name for name in sources if name != self.name]})
        self._held = holds
        row = Row(slot.leader == self.name, Token(table.term, slot.leader_epoch), slot.leader, slot.followers)
        self.store.adopt(table.epoch, {SLOT: row} if holds else {}, 0)

    def _complete(self, _slot_id: int, _gained_epoch: int) -> None:
        self.ready = True


class Moves(RuleBasedStateMachine):
    """Each PUT has a key of its own, so that every acknowledged one can be looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[RoutingTable] = []
        self.nodes: dict[str, Node] = {}
        self.puts = 0
        self.under_way: list[tuple[str, Value, Row, int, list[str]]] = []
        self.acknowledged: set[str] = set()
        self.fenced: set[str] = set()

    @initialize()
    def begin(self) -> None:
        """An empty table; then ``a`` leads and ``b`` follows."""
        self.tables.append(self._table("", (), changed=False))
        for name in NAMES:
            self.nodes[name] = Node(name, self.nodes, self.tables, 0)
        self.change_table(["a", "b"])
        self._settle()

    @precondition(lambda self: all(node.unread <= 1 for node in self.nodes.values()))
    @rule(replicas=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    def change_table(self, replicas: list[str]) -> None:
        """Any other holders, the first one leads."""
        leader, followers = replicas[0], tuple(sorted(replicas[1:]))
        slot = self.tables[-1].slots[SLOT]
        if (leader, followers) != (slot.leader, slot.followers):
            self.tables.append(self._table(leader, followers, changed=leader != slot.leader))

    @precondition(lambda self: any(node.behind for node in self.nodes.values()))
    @rule(which=_ANY)
    def read_table(self, which: int) -> None:
        """One node reads one table."""
        _choose(which, [node for node in self.nodes.values() if node.behind]).read_table()

    @precondition(lambda self: any(node.store.incomplete() for node in self.nodes.values()))
    @rule(which=_ANY, unreachable=st.sets(st.sampled_from(NAMES), max_size=2))
    def fetch(self, which: int, unreachable: set[str]) -> None:
        """One node's mover makes a round, while it cannot reach some of the others."""
        node = _choose(which, [node for node in self.nodes.values() if node.store.incomplete()])
        node.wires.unreachable = unreachable
        node.mover.fetch_once()
        node.wires.unreachable = set()

    @precondition(lambda self: any(node.serves for node in self.nodes.values()))
    @rule(which=_ANY)
    def put(self, which: int) -> None:
        """A client asks a node that accepts; the copies are still to be made."""
        node = _choose(which, [node for node in self.nodes.values() if node.serves])
        key = f"k{self.puts}"
        value, row = node.store.put(SLOT, key, "x")
        self.puts += 1
        self.under_way.append((key, value, row, node.store.epoch, list(row.followers)))

    @precondition(lambda self: self.under_way)
    @rule(which=_ANY)
    def copy(self, which: int) -> None:
        """One follower gets its copy, or the PUT fails; the last copy acknowledges it."""
        index = which % len(self.under_way)
        key, value, row, epoch, missing = self.under_way[index]
        if missing:
            try:
                self.nodes[missing[0]].store.copy(SLOT, row.token, epoch, key, value)
            except Refused:
                del self.under_way[index]
                return
            missing.pop(0)
        if not missing:
            self.acknowledged.add(key)
            del self.under_way[index]

    @precondition(lambda self: not any(node.behind or node.store.incomplete() for node in self.nodes.values()))
    @rule(which=st.integers(min_value=0, max_value=2), restarted_at_once=st.booleans())
    def kill(self, which: int, restarted_at_once: bool) -> None:
        """A holder dies while another complete one lives; its successor comes before or after the table knows."""
        slot = self.tables[-1].slots[SLOT]
        if len(slot.replicas) < 2:
            return
        victim = slot.replicas[which % len(slot.replicas)]
        self.under_way.clear()
        if restarted_at_once:
            self.tables.append(self._table(slot.leader or "", slot.followers, changed=False))
            self.nodes[victim] = Node(victim, self.nodes, self.tables, self.tables[-1].epoch)
        else:
            rest = [name for name in slot.replicas if name != victim]
            self.change_table(rest)
            self.nodes[victim] = Node(victim, self.nodes, self.tables, self.tables[-1].epoch)

    @invariant()
    def no_newer_leader_lacks_an_acknowledged_put(self) -> None:
        """The leader of the newest table that any node knows has everything, if it serves."""
        if not self.tables:
            return
        slot = self.tables[-1].slots[SLOT]
        leader = self.nodes.get(slot.leader or "")
        if leader is None or leader.behind:
            return
        missing = {key for key in self.acknowledged if leader.serves and leader.store.get(SLOT, key) is None}
        assert not missing, f"{leader.name} leads and lacks {sorted(missing)}"

    def teardown(self) -> None:
        """In the end everybody has read and fetched, and the leader serves."""
        if self.tables:
            self._settle()
            self.no_newer_leader_lacks_an_acknowledged_put()

    def _settle(self) -> None:
        """Everybody reads all tables and fetches until every holder is complete."""
        for node in self.nodes.values():
            while node.behind:
                node.read_table()
        for _ in range(10):
            for node in self.nodes.values():
                node.mover.fetch_once()
        assert not [node.name for node in self.nodes.values() if node.store.incomplete()]

    def _table(self, leader: str, followers: tuple[str, ...], *, changed: bool) -> RoutingTable:
        epoch = Epoch(len(self.tables))
        leader_epoch = epoch if changed or not self.tables else self.tables[-1].slots[SLOT].leader_epoch
        rows = {
            name: NodeRow(
                name,
                1,
                NodeRole.DATA,
                NodeStatus.FENCED if name in self.fenced else NodeStatus.ACTIVE,
                (Address(ADDRESS_NAME, name, 1),),
                "",
                1,
                "",
            )
            for name in NAMES
        }
        slot = Slot(SLOT, leader or None, followers, leader_epoch)
        hash_function = next(iter(HashFunction))
        return RoutingTable(
            Term(1), epoch, Seq(epoch), "log", TableSettings(1, 2, hash_function, 2_500), (slot,), rows, {}, {}, ""
        )


Moves.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestMoves = pytest.mark.timeout(600)(Moves.TestCase)


def test_a_source_that_lives_and_cannot_be_reached_is_waited_for() -> None:
    """A connection that fails once must not make a slot start empty while its data lives."""
    moves = Moves()
    moves.begin()
    moves.nodes["a"].store.put(SLOT, "k", "1")
    moves.change_table(["c"])
    new = moves.nodes["c"]
    new.read_table()
    new.wires.unreachable = {"a", "b"}
    new.mover.fetch_once()
    assert not new.serves
    new.wires.unreachable = set()
    new.mover.fetch_once()
    assert new.store.get(SLOT, "k") == "1"


def test_data_is_found_behind_a_leader_that_never_had_it() -> None:
    """A slot may move on before its fetch is done: the one in between tells whom it would have asked."""
    moves = Moves()
    moves.begin()
    moves.nodes["a"].store.put(SLOT, "k", "1")
    moves.change_table(["c"])
    moves.nodes["c"].read_table()
    moves.change_table(["d"])
    while moves.nodes["d"].behind:
        moves.nodes["d"].read_table()
    moves.nodes["d"].mover.fetch_once()
    moves.nodes["d"].mover.fetch_once()
    assert moves.nodes["d"].store.get(SLOT, "k") == "1"


def test_a_source_that_has_not_read_far_enough_is_asked_again() -> None:
    """Until it has read the table before the gain, nobody knows whether it held the slot then: that is no last word."""
    moves = Moves()
    moves.begin()
    moves.change_table(["a"])
    moves.change_table(["d"])
    new, old = moves.nodes["d"], moves.nodes["a"]
    while new.behind:
        new.read_table()
    new.mover.fetch_once()
    assert not new.serves
    old.read_table()
    new.mover.fetch_once()
    assert new.serves


def test_a_fenced_source_that_still_answers_is_not_waited_for() -> None:
    """Cut off from the log, it will never read further: the slot's new leader takes what it has and begins."""
    moves = Moves()
    moves.begin()
    moves.change_table(["c", "d"])
    new = moves.nodes["d"]
    new.read_table()
    moves.fenced |= {"a", "b", "c"}
    moves.change_table(["d"])
    new.read_table()
    new.wires.unreachable = {"a", "b"}
    new.mover.fetch_once()
    assert new.serves


def test_a_source_that_has_not_heard_of_its_slot_yet_is_fenced_and_asked_again() -> None:
    """Who gains a slot after a newer leader asked must not lead it any more, and what it then finds is no last word."""
    moves = Moves()
    moves.begin()
    moves.nodes["a"].store.put(SLOT, "k", "1")
    moves.change_table(["c"])
    moves.change_table(["d"])
    new, between = moves.nodes["d"], moves.nodes["c"]
    while new.behind:
        new.read_table()
    new.mover.fetch_once()
    assert not new.serves
    between.read_table()
    between.mover.fetch_once()
    assert not between.serves
    new.mover.fetch_once()
    between.read_table()
    new.mover.fetch_once()
    new.mover.fetch_once()
    assert new.store.get(SLOT, "k") == "1"
