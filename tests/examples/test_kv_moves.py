"""The key-value example without a network: no order of tables, PUTs, copies, fetches and deaths loses anything."""

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controlplane.core.hashing import HashFunction
from controlplane.core.identifiers import Epoch, Seq, Term
from controlplane.core.membership import NodeStatus
from controlplane.core.records import Address, NodeRole
from controlplane.core.rows import NodeRow, TableSettings
from controlplane.core.slot_table import Slot
from controlplane.core.table_replica import RoutingTable
from examples.kv.moving import ADDRESS_NAME, Mover
from examples.kv.protocol import Connections, Message, Place
from examples.kv.store import Refused, Row, SlotStore, Token, Value

NAMES = ("a", "b", "c", "d")
SLOT = 0


class Wires(Connections):
    """Reaches the other stores by function call, over JSON as the wire would."""

    def __init__(self, nodes: dict[str, "Node"]) -> None:
        super().__init__()
        self._nodes = nodes

    def ask(self, place: Place, request: Message, timeout_s: float) -> Message:
        """The answer of the node whose name stands for the host."""
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
        self._read = len(tables)
        self._held = False
        self.mover = Mover(name, self.store, Wires(nodes), lambda: tables[self._read - 1], self._complete)

    @property
    def behind(self) -> bool:
        """Whether there are tables that it has not read."""
        return self._read < len(self._tables)

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

    @initialize()
    def begin(self) -> None:
        """An empty table; then ``a`` leads and ``b`` follows."""
        self.tables.append(self._table("", (), changed=False))
        for name in NAMES:
            self.nodes[name] = Node(name, self.nodes, self.tables, 0)
        self.change_table(["a", "b"])
        self._settle()

    @rule(replicas=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    def change_table(self, replicas: list[str]) -> None:
        """Any other holders, the first one leads."""
        leader, followers = replicas[0], tuple(sorted(replicas[1:]))
        slot = self.tables[-1].slots[SLOT]
        if (leader, followers) != (slot.leader, slot.followers):
            self.tables.append(self._table(leader, followers, changed=leader != slot.leader))

    @rule(name=st.sampled_from(NAMES))
    def read_table(self, name: str) -> None:
        """One node reads one table."""
        if self.nodes[name].behind:
            self.nodes[name].read_table()

    @rule(name=st.sampled_from(NAMES))
    def fetch(self, name: str) -> None:
        """One node's mover makes a round."""
        self.nodes[name].mover.fetch_once()

    @rule(name=st.sampled_from(NAMES))
    def put(self, name: str) -> None:
        """A client asks any node; if it accepts, the copies are still to be made."""
        key = f"k{self.puts}"
        try:
            value, row = self.nodes[name].store.put(SLOT, key, "x")
        except Refused:
            return
        self.puts += 1
        self.under_way.append((key, value, row, self.nodes[name].store.epoch, list(row.followers)))

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(min_value=0))
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

    @rule(which=st.integers(min_value=0, max_value=2), restarted_at_once=st.booleans())
    def kill(self, which: int, restarted_at_once: bool) -> None:
        """A holder dies while another complete one lives; a new process takes its name at once, or after the table knows."""
        self._settle()
        slot = self.tables[-1].slots[SLOT]
        if len(slot.replicas) < 2:
            return
        victim = slot.replicas[which % len(slot.replicas)]
        self.under_way.clear()
        if restarted_at_once:
            self.tables.append(self._table(slot.leader or "", slot.followers, changed=False))
            self.nodes[victim] = Node(victim, self.nodes, self.tables[:-1], self.tables[-1].epoch)
            self.nodes[victim]._tables = self.tables  # noqa: SLF001 - it begins before the table that admits it
        else:
            rest = [name for name in slot.replicas if name != victim]
            self.change_table(rest)
            self.nodes[victim] = Node(victim, self.nodes, self.tables, 0)

    @invariant()
    def no_newer_leader_lacks_an_acknowledged_put(self) -> None:
        """The leader of the newest table that any node knows has everything, if it serves."""
        if not self.tables:
            return
        slot = self.tables[-1].slots[SLOT]
        leader = self.nodes.get(slot.leader or "")
        if leader is None or leader.behind:
            return
        missing = set()
        for key in self.acknowledged:
            try:
                missing |= set() if leader.store.get(SLOT, key) else {key}
            except Refused:
                return
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
            name: NodeRow(name, 1, NodeRole.DATA, NodeStatus.ACTIVE, (Address(ADDRESS_NAME, name, 1),), "", 1, "")
            for name in NAMES
        }
        slot = Slot(SLOT, leader or None, followers, leader_epoch)
        hash_function = next(iter(HashFunction))
        return RoutingTable(
            Term(1), epoch, Seq(epoch), "log", TableSettings(1, 2, hash_function), (slot,), rows, {}, {}, ""
        )


Moves.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMoves = Moves.TestCase
