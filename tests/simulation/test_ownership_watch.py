"""The check of tokens: what it accepts, and what it must not accept."""

from typing import Final

import pytest

from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.membership.events import NodeAdmitted
from controlplane.core.membership.node import Node, NodeRole, NodeStatus
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.node import FencingToken
from tests.simulation.invariants.ownership import OwnershipWatch
from tests.simulation.invariants.verdicts import BrokenInvariantError, Verdicts

TOKEN: Final = FencingToken(Term(1), Epoch(1))


class Court:
    """A watch of one key's writes, under a policy that may leave the dead in the table, or may not."""

    def __init__(self, *, dead_may_hold: bool) -> None:
        """Nothing was accepted."""
        self.verdicts = Verdicts()
        self.watch = OwnershipWatch(self.verdicts, lambda _: dead_may_hold)

    def admit(self, node_id: str) -> None:
        """A decision admits a node."""
        node = Node(node_id, 1, NodeRole.DATA, NodeStatus.ACTIVE, (), "", 1, 0, "1", 5, 1_000)
        events = (NodeAdmitted(node),)
        decision = Decision(Seq(1), Term(1), Epoch(1), "log", "c1", 1, 0, (), events, {}, "", None, "", "")
        self.watch.see(State(), decision, State())

    def accept(self, node_id: str, process: str, token: FencingToken = TOKEN) -> None:
        """A process accepts a write of the one key."""
        self.watch.accepted(node_id, process, "key", token)
        self.verdicts.require()


def test_a_token_is_one_nodes() -> None:
    """Another node needs a greater token, and no node returns with a smaller one."""
    court = Court(dead_may_hold=True)
    court.admit("n1")
    court.admit("n2")
    court.accept("n1", "n1, first run")
    with pytest.raises(BrokenInvariantError, match="n2 accepts key"):
        court.accept("n2", "n2, first run")
    later = Court(dead_may_hold=True)
    later.accept("n1", "n1, first run", FencingToken(Term(2), Epoch(2)))
    with pytest.raises(BrokenInvariantError, match="n1 accepts key"):
        later.accept("n1", "n1, first run")


def test_a_node_that_came_back_needs_another_token() -> None:
    """Dead nodes hold nothing by default, so a node that is admitted finds no former slots."""
    court = Court(dead_may_hold=False)
    court.admit("n1")
    court.accept("n1", "n1, first run")
    court.admit("n1")
    with pytest.raises(BrokenInvariantError, match="n1 accepts key"):
        court.accept("n1", "n1, second run")


def test_where_the_dead_may_hold_each_admission_has_one_heir() -> None:
    """The former process has ended by then, and a third one that was not admitted inherits nothing."""
    for last in ("n1, first run", "n1, third run"):
        court = Court(dead_may_hold=True)
        court.admit("n1")
        court.accept("n1", "n1, first run")
        court.admit("n1")
        court.accept("n1", "n1, second run")
        with pytest.raises(BrokenInvariantError, match="n1 accepts key"):
            court.accept("n1", last)


def test_a_process_that_was_not_admitted_inherits_nothing() -> None:
    """The admission of the one before it is that one's."""
    court = Court(dead_may_hold=True)
    court.admit("n1")
    court.accept("n1", "n1, first run")
    with pytest.raises(BrokenInvariantError, match="n1 accepts key"):
        court.accept("n1", "n1, second run")
