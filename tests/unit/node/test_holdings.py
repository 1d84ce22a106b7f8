"""The slots that a node holds, table by table: gains with sources, losses, changes, and what they do to readiness."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.config import ROUTING_TABLE, ClusterConfig
from controlplane.core.membership.node import NodeStatus
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import Epoch, Term
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.node.callbacks import Access, Changes, FencingToken
from controlplane.node.holdings import HoldingBook
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from controlplane.topic_reading.table_follower import TableFollower
from tests.helpers.table_feed import TableFeed

CLUSTER = ClusterConfig("test")
INCARNATION = 7


class Setting:
    """A hand-written table, a reader of it, and the book of node ``n``."""

    def __init__(self) -> None:
        broker = MemoryBroker(VirtualClock())
        broker.create_topic(CLUSTER.topic(ROUTING_TABLE))
        self.feed = TableFeed(MemoryTransactionalWriter(CLUSTER, broker))
        self.book = HoldingBook("n")
        self._follower = TableFollower(MemoryLogReader(CLUSTER, broker))
        for other in ("a", "b", "c"):
            self.feed.node(other)
        self.feed.node("n", incarnation=INCARNATION)

    def read(self) -> list[RoutingTable]:
        """The tables of the epochs that were committed since the last call."""
        return list(self._follower.step(0).tables)

    def commit(self) -> Changes:
        """Commit what is staged and let the book follow it."""
        self.feed.commit()
        (table,) = self.read()
        return self.follow(table)

    def follow(self, table: RoutingTable) -> Changes:
        """Let the book follow a table, and begin to report what it changes."""
        changes = self.book.follow(table, INCARNATION)
        self.book.begin(changes)
        return changes

    def access(self, slot_id: int = 0) -> Access:
        """What the node answers for a slot."""
        return self.book.ownership(slot_id).access


def test_the_sources_of_a_gain_begin_with_the_former_leader() -> None:
    """The former slot leader has every write; those who died have nothing that can be fetched."""
    setting = Setting()
    setting.feed.slot(0, "c", "a", "b").commit()
    setting.follow(setting.read()[-1])
    setting.feed.status("b", NodeStatus.FENCED)
    setting.feed.slot(0, "n", "a")
    changes = setting.commit()
    (gained,) = changes.gained
    assert gained.sources == ("c", "a")
    assert gained.leads
    assert gained.token == FencingToken(Term(1), Epoch(2))
    assert setting.access() is Access.MIGRATING


def test_a_follower_that_gains_a_slot_may_fetch_from_the_new_leader() -> None:
    """A slot that nobody held before has its data, if any, at those who got it at the same time."""
    setting = Setting()
    setting.feed.slot(0, "a", "n")
    changes = setting.commit()
    assert [gained.sources for gained in changes.gained] == [("a",)]
    assert not changes.gained[0].leads
    assert setting.access() is Access.MOVED, "a follower serves nobody"
    assert setting.book.ownership(0).ask == "a"


def test_a_ready_follower_that_is_promoted_serves_at_once() -> None:
    """Its data is complete: a promotion needs no fetching."""
    setting = Setting()
    setting.feed.slot(0, "a", "n")
    setting.commit()
    assert setting.book.mark_ready(0, Epoch(1))
    setting.feed.slot(0, "n")
    changes = setting.commit()
    (changed,) = changes.changed
    assert (changed.led, changed.leads) == (False, True)
    assert setting.access() is Access.ACCEPT
    assert not changes.gained


def test_a_slot_that_is_gained_again_has_to_be_fetched_again() -> None:
    """While it was away others wrote to it; and readiness that was meant for the former time must not count."""
    setting = Setting()
    setting.feed.slot(0, "n")
    setting.commit()
    assert setting.book.mark_ready(0, Epoch(1))
    setting.feed.slot(0, "a")
    changes = setting.commit()
    assert [(lost.slot_id, lost.led, lost.leader) for lost in changes.lost] == [(0, True, "a")]
    assert not setting.book.mark_ready(0, None), "it is not held"
    setting.feed.slot(0, "n")
    setting.commit()
    assert setting.access() is Access.MIGRATING
    assert not setting.book.mark_ready(0, Epoch(1)), "that was the former holding"
    assert setting.access() is Access.MIGRATING
    assert setting.book.mark_ready(0, Epoch(3))
    assert setting.access() is Access.ACCEPT


def test_readiness_without_an_epoch_counts_for_a_gain_of_which_the_service_was_told() -> None:
    """The service may still be about an earlier gain of the slot, while the table has gone on."""
    setting = Setting()
    setting.feed.slot(0, "n")
    setting.commit()
    setting.feed.slot(0, "a")
    setting.commit()
    setting.feed.slot(0, "n").commit()
    changes = setting.book.follow(setting.read()[-1], INCARNATION)
    assert not setting.book.mark_ready(0, None)
    assert setting.access() is Access.MIGRATING
    setting.book.begin(changes)
    assert setting.book.mark_ready(0, None)
    assert setting.access() is Access.ACCEPT


def test_a_slot_rewritten_in_skipped_epochs_counts_as_lost_and_gained() -> None:
    """Two tables that give the slot to this node do not say that it had it in between."""
    setting = Setting()
    setting.feed.slot(0, "n", "a").slot(1, "n").commit()
    setting.feed.slot(0, "a", "b").commit()
    setting.feed.slot(0, "n", "b").commit()
    first, _, third = setting.read()
    setting.follow(first)
    for slot_id in (0, 1):
        setting.book.mark_ready(slot_id, None)
    changes = setting.follow(third)
    assert [lost.slot_id for lost in changes.lost] == [0]
    assert [(gained.slot_id, gained.sources) for gained in changes.gained] == [(0, ("b", "a"))]
    assert (setting.access(0), setting.access(1)) == (Access.MIGRATING, Access.ACCEPT)


def test_sources_add_up_until_the_data_is_here() -> None:
    """A new leader that had not fetched yet is no source; those whom it would have asked still are."""
    setting = Setting()
    setting.feed.slot(0, "a").commit()
    setting.follow(setting.read()[-1])
    setting.feed.slot(0, "b", "n")
    setting.commit()
    setting.feed.slot(0, "n", "c")
    changes = setting.commit()
    assert changes.changed[0].sources == ("b", "c", "a")


def test_a_row_that_is_written_again_is_told_even_if_it_says_the_same() -> None:
    """Whoever compares tables by the identity of their rows must hear of each that is another object."""
    setting = Setting()
    setting.feed.slot(0, "n", "a")
    setting.commit()
    setting.feed.slot(0, "n", "a")
    changes = setting.commit()
    assert [(changed.slot_id, changed.led, changed.leads) for changed in changes.changed] == [(0, True, True)]
    assert not setting.commit().changed


def test_rows_of_another_process_give_nothing() -> None:
    """A restarted process must not take over what the table still gives to the one that died."""
    setting = Setting()
    setting.feed.node("n", incarnation=INCARNATION - 1).slot(0, "n")
    changes = setting.commit()
    assert not changes.gained
    assert setting.book.holds_nothing
    setting.feed.node("n", incarnation=INCARNATION)
    changes = setting.commit()
    assert [gained.slot_id for gained in changes.gained] == [0]
    assert setting.access() is Access.MIGRATING


def test_a_fenced_node_loses_everything() -> None:
    """What the table takes a node for, it is; rows that were not moved yet do not matter."""
    setting = Setting()
    setting.feed.slot(0, "n")
    setting.commit()
    setting.book.mark_ready(0, None)
    setting.feed.status("n", NodeStatus.FENCED)
    changes = setting.commit()
    assert [lost.slot_id for lost in changes.lost] == [0]
    assert setting.access() is Access.MOVED
    assert setting.book.holds_nothing


def test_a_draining_node_keeps_what_it_holds() -> None:
    """It serves until the table takes its slots away."""
    setting = Setting()
    setting.feed.slot(0, "n")
    setting.commit()
    setting.book.mark_ready(0, None)
    setting.feed.status("n", NodeStatus.DRAINING)
    setting.commit()
    assert setting.access() is Access.ACCEPT


def test_statuses_say_what_is_held_and_how_far_it_is() -> None:
    """The leader prefers replicas that are complete, so heartbeats have to be right."""
    setting = Setting()
    setting.feed.slot(0, "n").slot(1, "a", "n").slot(2, "a")
    setting.commit()
    setting.book.mark_ready(1, None, synced_at_ms=55)
    slots = setting.book.report(wall_ms=99).statuses
    assert [(slot.slot_id, slot.leads, slot.status, slot.last_sync_ms) for slot in slots] == [
        (0, True, ReplicaStatus.MIGRATING, 0),
        (1, False, ReplicaStatus.HEALTHY, 55),
    ]
    assert setting.book.count() == (1, 1)


def test_a_follower_that_gets_every_write_is_in_sync_whenever_it_beats() -> None:
    """Nobody marks it ready again, and yet a policy that waits for followers must not find it out of date."""
    setting = Setting()
    setting.feed.slot(0, "a", "n").slot(1, "a", "n").slot(2, "n", "a")
    setting.commit()
    setting.book.mark_ready(0, None)
    setting.book.mark_ready(2, None)
    for wall_ms in (99, 200_000):
        slots = setting.book.report(wall_ms).statuses
        assert [slot.last_sync_ms for slot in slots] == [wall_ms, 0, 0], "in sync, never, and a slot leader"


def test_unknown_slots_are_refused() -> None:
    """A request for a slot that no table has, or before the first table, gets an answer and no error."""
    assert HoldingBook("n").ownership(3).access is Access.MOVED
    setting = Setting()
    setting.commit()
    assert setting.access(99) is Access.UNSUPPORTED
    assert setting.access(-1) is Access.UNSUPPORTED


rows = st.fixed_dictionaries(
    {},
    optional={
        slot_id: st.tuples(st.sampled_from(["a", "b", "n", None]), st.sampled_from([(), ("c",), ("n",)])).filter(
            lambda row: row[0] not in row[1]
        )
        for slot_id in range(3)
    },
)
histories = st.lists(
    st.fixed_dictionaries(
        {"rows": rows, "status": st.sampled_from([None, NodeStatus.ACTIVE, NodeStatus.FENCED]), "seen": st.booleans()}
    ),
    max_size=12,
)


@given(histories)
@settings(max_examples=2 * settings().max_examples)
def test_lost_and_gained_tell_the_whole_story(history: list[Mapping[str, object]]) -> None:
    """Whoever only listens to the changes holds what the table says, and is ready for nothing that it may have lost."""
    setting = Setting()
    heard: set[int] = set()
    unbroken: set[int] = set()
    for step in history:
        for slot_id, (leader, followers) in step["rows"].items():  # type: ignore[attr-defined]  # drawn as a mapping
            setting.feed.slot(slot_id, leader, *followers)
        if step["status"] is not None:
            setting.feed.status("n", step["status"])  # type: ignore[arg-type]  # drawn as a status
        setting.feed.commit()
        (table,) = setting.read()
        row = table.nodes["n"]
        held = {slot.slot_id for slot in table.slots if "n" in slot.replicas and row.status is NodeStatus.ACTIVE}
        unbroken &= held
        if not step["seen"]:
            continue
        changes = setting.book.follow(table, INCARNATION)
        heard -= {lost.slot_id for lost in changes.lost}
        gained = {slot.slot_id for slot in changes.gained}
        assert not gained & heard
        heard |= gained
        assert heard == held
        assert {slot_id for slot_id in held if slot_id not in gained} <= unbroken
        for slot in changes.gained:
            assert setting.book.mark_ready(slot.slot_id, slot.epoch)
        unbroken = set(held)
        ready = {
            slot.slot_id for slot in setting.book.report(wall_ms=1).statuses if slot.status is ReplicaStatus.HEALTHY
        }
        assert ready == held
