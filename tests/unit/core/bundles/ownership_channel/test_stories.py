"""Whole stories of a bundle: nodes die in the middle of a change, and the leader repairs what is left."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from controlplane.core.bundles.ownership_channel import requests
from controlplane.core.bundles.ownership_channel.cleanup import bundles_of_node, override, plan_clean_up
from controlplane.core.bundles.ownership_channel.flows import Action, CloseTopics, Divide, Participant, Serve
from controlplane.core.bundles.ownership_channel.lookup import Asker, NoOwner, Owner, Refusal, Refused, look_up
from controlplane.core.bundles.ownership_channel.lost_nodes import MetadataState
from controlplane.core.bundles.ownership_channel.monitor import find_stuck
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.ownership_channel.split_steps import split_steps
from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.ownership_channel.table import OwnershipTable, Written
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH, Boundaries, HashRange

PARENT = "t/n/0x00000000_0xffffffff"
HALVES = (HashRange(0, 0x80000000), HashRange(0x80000000, LAST_HASH))
CHILDREN = tuple(f"t/n/{half.name}" for half in HALVES)
SETTINGS = OwnershipSettings()
STORAGES = pytest.mark.parametrize("storage", Storage)


@dataclass
class Fleet:
    """Nodes at one table; those that are alive do what they read."""

    storage: Storage
    alive: set[str] = field(default_factory=lambda: set("abc"))
    boundaries: Boundaries = field(default_factory=lambda: Boundaries((0, LAST_HASH)))
    now_ms: int = 0
    done: list[tuple[str, Action]] = field(default_factory=list)
    dies_dividing: str = ""

    def __post_init__(self) -> None:
        """Begin with an empty table."""
        self.table = OwnershipTable(self.storage)

    def publish(self, *written: Written) -> None:
        """Publish records, and let the living nodes act until nobody publishes any more."""
        log = list(written)
        while log:
            self.table, (judged,) = self.table.read([log.pop(0)])
            if judged.verdict.keeps:
                continue
            for node_id in sorted(self.alive):
                for action in Participant(node_id, SETTINGS).on_record(judged.written, self.now_ms):
                    self.done.append((node_id, action))
                    log += [action] if isinstance(action, Written) else self._divided(node_id, action)

    def owner(self, bundle_id: str) -> object:
        """What node c answers to a look-up."""
        asker = Asker("c", frozenset(self.alive))
        return look_up(self.table.records.get(bundle_id), asker, self.now_ms, SETTINGS.in_flight_ms)

    def clean_up(self, lost: str, chosen: str | None, *, gracefully: bool = False) -> None:
        """Give the bundles of a node to another one."""
        found = bundles_of_node(self.table.records, lost)
        plan = plan_clean_up(
            self.table.records,
            lost,
            dict.fromkeys((*found.others, *found.system), chosen),
            self.now_ms,
            max_concurrent=SETTINGS.max_concurrent_overrides,
            gracefully=gracefully,
        )
        for batch in (*plan.others, *plan.system):
            self.publish(*(Written(each.bundle_id, each.record) for each in batch))

    def _divided(self, node_id: str, action: Action) -> Iterable[Written]:
        if not isinstance(action, Divide):
            return ()
        steps = split_steps(action.bundle_id, action.record, self.table.records, self.boundaries, self.now_ms)
        if self.dies_dividing == node_id:
            self.alive.remove(node_id)
            return steps.children[:1]
        self.boundaries = steps.boundaries or self.boundaries
        return (*steps.children, *((steps.deleted,) if steps.deleted is not None else ()))


def owned_by_a(storage: Storage) -> Fleet:
    """A fleet in which a serves the bundle."""
    fleet = Fleet(storage)
    fleet.publish(Written(PARENT, requests.assign(None, "a", 0)))
    return fleet


@STORAGES
def test_two_nodes_assign_a_bundle_at_once(storage: Storage) -> None:
    """Both asked for an owner, and both get the same one."""
    fleet = Fleet(storage)
    assert fleet.owner(PARENT) == NoOwner()
    fleet.publish(Written(PARENT, requests.assign(None, "a", 0)), Written(PARENT, requests.assign(None, "b", 0)))
    assert fleet.owner(PARENT) == Owner("a", is_checked=True)
    assert [node_id for node_id, action in fleet.done if isinstance(action, Serve)] == ["a"]


@STORAGES
def test_a_split_from_end_to_end(storage: Storage) -> None:
    """The parts stay with the owner, and of the parent nothing is left."""
    fleet = owned_by_a(storage)
    children: dict[str, str | None] = {half.name: None for half in HALVES}
    fleet.publish(Written(PARENT, requests.split(fleet.table.records[PARENT], "a", children, 0)))
    assert fleet.boundaries.ranges == HALVES
    assert [fleet.owner(child) for child in CHILDREN] == [Owner("a", is_checked=True)] * 2
    assert PARENT not in fleet.table.records
    assert fleet.owner(PARENT) == NoOwner()


@STORAGES
def test_a_node_dies_while_it_divides_a_bundle(storage: Storage) -> None:
    """The next node finds one part written, and does the rest; the dead node's part is cleaned up like any bundle."""
    fleet = owned_by_a(storage)
    fleet.dies_dividing = "a"
    children: dict[str, str | None] = {half.name: None for half in HALVES}
    fleet.publish(Written(PARENT, requests.split(fleet.table.records[PARENT], "a", children, 0)))
    assert fleet.table.records[PARENT].state is OwnershipState.SPLITTING
    found = find_stuck(fleet.table.records, fleet.alive, 0, SETTINGS, MetadataState.STABLE, is_leader=True)
    assert [(node.node_id, node.bundle_ids) for node in found.inactive] == [("a", (PARENT, CHILDREN[0]))]
    fleet.clean_up("a", "b")
    assert fleet.boundaries.ranges == HALVES
    assert [fleet.owner(child) for child in CHILDREN] == [Owner("b", is_checked=True)] * 2
    assert fleet.owner(PARENT) == NoOwner()


@STORAGES
def test_an_owner_dies(storage: Storage) -> None:
    """Until the leader has cleaned up, a look-up waits; if the owner is alive after all, it is told the new one."""
    fleet = owned_by_a(storage)
    fleet.alive.remove("a")
    assert "until_ms" in repr(fleet.owner(PARENT))
    fleet.alive.add("a")
    fleet.clean_up("a", "b")
    assert fleet.owner(PARENT) == Owner("b", is_checked=True)
    assert ("a", CloseTopics(PARENT, disconnects_clients=True, new_owner="b")) in fleet.done


@STORAGES
def test_an_owner_dies_and_no_node_may_take_its_bundle(storage: Storage) -> None:
    """The bundle is free for whoever asks for an owner next."""
    fleet = owned_by_a(storage)
    fleet.alive.remove("a")
    fleet.clean_up("a", None)
    assert fleet.owner(PARENT) == NoOwner()
    freed = fleet.table.records[PARENT]
    assert (freed.state, freed.source) == (OwnershipState.FREE, "a")
    fleet.publish(Written(PARENT, requests.assign(freed, "b", 0)))
    assert fleet.owner(PARENT) == Owner("b", is_checked=True)


@STORAGES
def test_a_node_shuts_down(storage: Storage) -> None:
    """Its bundle is transferred in good order, and its clients learn the new owner."""
    fleet = owned_by_a(storage)
    fleet.clean_up("a", "b", gracefully=True)
    assert fleet.owner(PARENT) == Owner("b", is_checked=True)
    assert bundles_of_node(fleet.table.records, "a") == ((), ())
    closed = [action for node_id, action in fleet.done if node_id == "a" and isinstance(action, CloseTopics)]
    assert closed == [
        CloseTopics(PARENT, disconnects_clients=False),
        CloseTopics(PARENT, disconnects_clients=True, new_owner="b"),
    ]


@STORAGES
def test_a_transfer_is_stuck_between_living_nodes(storage: Storage) -> None:
    """The source did not act: after half a minute the leader gives the bundle to whoever is best now."""
    fleet = owned_by_a(storage)
    fleet.alive.remove("a")
    fleet.publish(Written(PARENT, requests.unload(fleet.table.records[PARENT], "a", 0, "b")))
    assert fleet.owner(PARENT) == Owner("b", is_checked=False)
    fleet.alive.add("a")
    fleet.now_ms = SETTINGS.in_flight_ms + 1
    found = find_stuck(fleet.table.records, fleet.alive, fleet.now_ms, SETTINGS, MetadataState.STABLE, is_leader=True)
    assert [each.bundle_id for each in found.stuck] == [PARENT]
    repaired = override(PARENT, fleet.table.records[PARENT], "a", fleet.now_ms)
    fleet.publish(Written(PARENT, repaired.record))
    assert fleet.table.records[PARENT] == OwnershipRecord(
        OwnershipState.OWNED, "a", None, 4, fleet.now_ms, is_forced=True
    )


def test_a_deleted_bundle_has_no_owner_while_its_record_lasts() -> None:
    """A client that asks for it has old boundaries, and has to read them anew."""
    record = OwnershipRecord(OwnershipState.DELETED, None, "dead")
    assert look_up(record, Asker("c", frozenset()), 0, 1) == Refused(Refusal.DELETED)
