"""Tables that a node of the key-value service adopts while requests come at any moment between two callbacks."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.identifiers import Epoch
from controlplane.node import Ownership, SessionState
from controlplane.node.callbacks import Changes, tell
from controlplane.node.holdings import HoldingBook
from controlplane.node.served_request import ServedSlotRequest
from examples.kv.node import KvNode
from examples.serving.protocol import Server
from examples.serving.service import give_agent
from tests.unit.node.test_holdings import INCARNATION, Setting

STATUS = {"op": "status"}


class Agent:
    """Shows the tables that the test gives it, as an agent does: first the table, then the callbacks."""

    def __init__(self, book: HoldingBook) -> None:
        """Without a table."""
        self.table: RoutingTable | None = None
        self.on_wait: Callable[[], object] = lambda: None
        self.state = SessionState.ACTIVE
        self._book = book

    def ownership(self, slot_id: int) -> Ownership:
        """By the holdings alone."""
        return self._book.ownership(slot_id)

    def serve_slot_of(self, key: str) -> ServedSlotRequest:
        """By the holdings alone."""
        return ServedSlotRequest(lambda: self._book.accept(key), self._book.leave, lambda: True)

    def wait_for_epoch(self, epoch: Epoch, *, timeout_ms: int) -> bool:
        """Read in no time what there is to be read."""
        assert timeout_ms
        if self.table is None or self.table.epoch < epoch:
            self.on_wait()
        return self.table is not None and self.table.epoch >= epoch

    def slot_ready(self, slot_id: int, gained_epoch: Epoch | None = None) -> bool:
        """Note it."""
        return self._book.mark_ready(slot_id, gained_epoch)


class Service:
    """The service of node n, beside a hand-written table."""

    def __init__(self) -> None:
        """Hold slot 0 with all of its data."""
        self.setting = Setting()
        self.agent = Agent(self.setting.book)
        self.node = KvNode("n")
        give_agent(self.node, lambda **_: self.agent)  # type: ignore[arg-type]  # it has what the node asks of it
        self.setting.feed.slot(0, "n").slot(1, "a")
        self.tell(self.show())
        self.node._mover.fetch_once()  # noqa: SLF001 - its thread does not run here
        assert self.node.store.incomplete() == []

    def show(self) -> Changes:
        """The next table, before the callbacks."""
        self.setting.feed.commit()
        (self.agent.table,) = self.setting.read()
        return self.setting.book.follow(self.agent.table, INCARNATION)

    def tell(self, changes: Changes) -> None:
        """Run the callbacks of a table."""
        tell(self.node, changes)

    def request(self) -> None:
        """A request makes the service look at the newest table."""
        self.node._follow()  # noqa: SLF001 - as every request does first


@pytest.fixture
def service() -> Iterator[Service]:
    """A service that leads slot 0."""
    made = Service()
    yield made
    made.node.close()  # it listens from its making on


def test_a_server_that_is_closed_has_ended_its_thread() -> None:
    """One that goes on serving its closed socket takes a core for as long as the process runs."""
    known = set(threading.enumerate())
    server = Server(("127.0.0.1", 0), lambda message: message)
    (thread,) = (each for each in threading.enumerate() if each.name == "server" and each not in known)
    server.close()
    thread.join(5)
    assert not thread.is_alive()


def test_a_request_between_table_and_callback_costs_no_slot(service: Service) -> None:
    """Two epochs had nothing for this node and no request came; the third one rewrites the row of its slot."""
    for leader in ("b", "a"):
        service.setting.feed.slot(1, leader)
        service.tell(service.show())
    service.setting.feed.slot(0, "n", "b")
    changes = service.show()
    service.request()
    service.tell(changes)
    service.request()
    assert service.node.answer(STATUS)["held"] == 1
    assert service.node.store.incomplete() == []
    service.node.store.put(0, "k", "v")


def test_a_request_between_table_and_callback_while_slots_are_split(service: Service) -> None:
    """The new table has slots that the adopted one lacks."""
    service.setting.feed.slot(1, "b")
    service.tell(service.show())
    service.setting.feed.slot(1, "a")
    service.show()
    table = service.agent.table
    assert table is not None
    parts = tuple(replace(slot, slot_id=slot.slot_id + len(table.slots)) for slot in table.slots)
    service.agent.table = replace(table, slots=(*table.slots, *parts), epoch=Epoch(table.epoch + 1))
    service.request()
    service.tell(service.setting.book.follow(service.agent.table, INCARNATION))
    service.request()
    assert service.node.answer(STATUS)["held"] == 2


def test_a_request_by_a_newer_table_is_served_once_the_node_has_read_it(service: Service) -> None:
    """The client was told that the node leads the slot of its key now, before the node was."""
    key = next(str(number) for number in range(100) if service.setting.book.ownership(str(number)).slot_id == 2)
    get = {"op": "get", "key": key}
    epoch = service.node.store.epoch
    assert service.node.answer({**get, "epoch": epoch}) == {"status": "moved", "epoch": epoch}

    def read_on() -> None:
        service.setting.feed.slot(2, "n")
        changes = service.show()
        service.setting.book.begin(changes)
        service.tell(changes)
        service.node._mover.fetch_once()  # noqa: SLF001 - its thread does not run here

    service.agent.on_wait = read_on
    assert service.node.answer({**get, "epoch": epoch}) == {"status": "moved", "epoch": epoch}  # nothing to wait for
    assert service.node.answer({**get, "epoch": epoch + 1}) == {"status": "ok", "value": None}
    assert service.node.answer({**get, "epoch": epoch + 9})["status"] == "ok"


def test_a_copy_by_a_newer_table_is_stored_once_the_node_has_the_slot(service: Service) -> None:
    """Its leader has read of the new follower, and the follower has not, or has not been told yet."""
    epoch = service.node.store.epoch
    copy = {"op": "copy", "slot": 1, "term": 1, "leader_epoch": 1, "key": "k", "value": "v", "version": (1, 1)}
    assert service.node.answer({**copy, "epoch": epoch + 1}) == {"status": "behind", "epoch": epoch}
    service.setting.feed.slot(1, "a", "n")
    tellers: list[threading.Thread] = []

    def read_and_be_told_later() -> None:
        tellers.append(threading.Timer(0.05, service.tell, (service.show(),)))
        service.request()  # another one makes the service look at the table
        tellers[0].start()

    service.agent.on_wait = read_and_be_told_later
    assert service.node.answer({**copy, "epoch": epoch + 1}) == {"status": "ok"}
    tellers[0].join()


def test_a_copy_for_a_slot_that_the_node_is_never_told_of_is_refused(service: Service) -> None:
    """Its row may be that of the node's former process."""
    service.setting.feed.slot(1, "a", "n")
    service.show()
    epoch = service.node.store.epoch + 1
    copy = {"op": "copy", "slot": 1, "term": 1, "leader_epoch": 1, "key": "k", "value": "v", "version": (1, 1)}
    assert service.node.answer({**copy, "epoch": epoch}) == {"status": "moved", "epoch": epoch}


OWNERS = st.sampled_from(["n", "a", "b"])
STEPS = st.lists(st.tuples(st.integers(0, 3), OWNERS, OWNERS, st.booleans(), st.booleans(), st.booleans()), max_size=12)


@given(steps=STEPS)
def test_the_service_holds_what_the_table_says_once_it_is_told(
    steps: list[tuple[int, str, str, bool, bool, bool]],
) -> None:
    """Whatever tables come, and whether requests come before, between or after their callbacks."""
    service = Service()
    try:
        for slot_id, leader, follower, before, skips, after in steps:
            service.setting.feed.slot(slot_id, leader, *({follower} - {leader}))
            if skips:
                service.setting.feed.commit()
                service.setting.read()
                service.setting.feed.slot(slot_id, leader)
            changes = service.show()
            if before:
                service.request()
            service.tell(changes)
            if after:
                service.request()
        service.request()
        table = service.agent.table
        assert table is not None
        assert service.node._held == {slot.slot_id for slot in table.slots if "n" in slot.replicas}  # noqa: SLF001
    finally:
        service.node.close()
