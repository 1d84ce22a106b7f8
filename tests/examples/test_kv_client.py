"""What the client of the key-value service waits for after an answer, table by table."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controlplane.core.cluster.policy import HashFunction
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Seq, Term
from examples.kv.client import KvClient

LED = Slot(0, "a", ("b",), Epoch(1))
RELEASED = replace(LED, next_leader="b", release_epoch=Epoch(5))
MOVED = Slot(0, "b", ("a",), Epoch(6))
ORPHANED = Slot(0, None, ("b",), Epoch(6))


def table_of(epoch: int, slot: Slot) -> RoutingTable:
    """A table of one slot."""
    settings = TableSettings(1, 2, next(iter(HashFunction)), 2_500)
    return RoutingTable(Term(1), Epoch(epoch), Seq(epoch), "log", settings, (slot,), {}, {}, {}, "")


class Routing:
    """Has one table, and notes what is waited for."""

    def __init__(self, table: RoutingTable) -> None:
        """Nothing is waited for yet."""
        self.table = table
        self.is_worth: Callable[[RoutingTable], bool] | None = None
        self.timeout_ms = 0

    def wait_for(self, condition: Callable[[RoutingTable], bool], *, timeout_ms: int) -> None:
        """Note it."""
        self.is_worth, self.timeout_ms = condition, timeout_ms


def waited_for(table: RoutingTable, answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Routing:
    """What the client waits for when node a has given an answer."""
    client = KvClient("test", "127.0.0.1:1")
    routing = Routing(table)
    monkeypatch.setattr(client, "routing", routing)
    monkeypatch.setattr("examples.kv.client.time.sleep", lambda _: None)
    client._wait("k", "a", answer, 0.02)  # noqa: SLF001 - between two requests
    return routing


@pytest.mark.parametrize("told_epoch", [4, 5, 6])
def test_a_released_slot_is_asked_for_again_when_another_node_leads_it(
    told_epoch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the client or the node has read more: not while the slot is released, and not while it has no leader."""
    routing = waited_for(table_of(5, RELEASED), {"status": "moved", "epoch": told_epoch}, monkeypatch)
    assert routing.is_worth is not None
    assert routing.timeout_ms == 500
    assert [routing.is_worth(table_of(epoch, row)) for epoch, row in ((5, RELEASED), (7, RELEASED), (7, ORPHANED))] == [
        False
    ] * 3
    assert routing.is_worth(table_of(7, MOVED))
    assert routing.is_worth(table_of(7, LED))  # it was taken back


def test_a_later_table_is_read_before_the_same_node_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node has read of the release, and the client has not."""
    routing = waited_for(table_of(4, LED), {"status": "moved", "epoch": 5}, monkeypatch)
    assert routing.is_worth is not None
    assert not routing.is_worth(table_of(4, LED))
    assert not routing.is_worth(table_of(5, RELEASED))
    assert routing.is_worth(table_of(6, MOVED))


def test_a_lapsed_session_is_not_waited_for_like_a_handoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node refuses what the table leaves with it: it may serve again without another table."""
    assert waited_for(table_of(4, LED), {"status": "moved", "epoch": 4}, monkeypatch).timeout_ms == 200


@pytest.mark.parametrize("status", ["error", "migrating"])
def test_other_answers_are_repeated_by_the_table_that_they_name(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a moment, where the client has read as far."""
    assert waited_for(table_of(4, LED), {"status": status, "epoch": 4}, monkeypatch).is_worth is None
    routing = waited_for(table_of(4, LED), {"status": status, "epoch": 5}, monkeypatch)
    assert routing.is_worth is not None
    assert routing.is_worth(table_of(5, LED))


def test_a_node_that_cannot_be_reached_is_asked_again_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or another one at once, if the table names one by now."""
    unreachable = {"status": "unreachable", "message": "refused"}
    assert waited_for(table_of(4, LED), unreachable, monkeypatch).is_worth is None
    routing = waited_for(table_of(6, MOVED), unreachable, monkeypatch)
    assert routing.is_worth is not None
    assert routing.is_worth(routing.table)
