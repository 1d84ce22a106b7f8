"""The check of tokens: what it accepts, and what it must not accept."""

from typing import Final

import pytest

from controlplane.core.values.identifiers import Epoch, Term
from controlplane.node import FencingToken
from tests.simulation.invariants.ownership import OwnershipWatch
from tests.simulation.invariants.verdicts import BrokenInvariantError, Verdicts

TOKEN: Final = FencingToken(Term(1), Epoch(1))
LATER: Final = FencingToken(Term(2), Epoch(2))


class Court:
    """A watch of one key's writes."""

    def __init__(self) -> None:
        """Nothing was accepted."""
        self._verdicts = Verdicts()
        self._watch = OwnershipWatch(self._verdicts)

    def accept(self, node_id: str, process: str, token: FencingToken = TOKEN) -> None:
        """A process accepts a write of the one key."""
        self._watch.accepted(node_id, process, "key", token)
        self._verdicts.require()


def test_a_process_accepts_under_its_token_again_and_again() -> None:
    """And its successor under a later one."""
    court = Court()
    court.accept("n1", "n1, first run")
    court.accept("n1", "n1, first run")
    court.accept("n2", "n2, first run", LATER)


@pytest.mark.parametrize(("node_id", "process"), [("n2", "n2, first run"), ("n1", "n1, second run")])
def test_a_token_belongs_to_one_process(node_id: str, process: str) -> None:
    """Another node needs a greater token, and so does a new process of the same node."""
    court = Court()
    court.accept("n1", "n1, first run")
    with pytest.raises(BrokenInvariantError, match=f"{node_id} accepts key"):
        court.accept(node_id, process)


def test_no_process_returns_to_a_smaller_token() -> None:
    """Also where it has accepted under that token before."""
    court = Court()
    court.accept("n1", "n1, first run")
    court.accept("n1", "n1, first run", LATER)
    with pytest.raises(BrokenInvariantError, match="n1 accepts key"):
        court.accept("n1", "n1, first run")
