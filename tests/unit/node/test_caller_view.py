"""Answers to callers that say by which row they have chosen a node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.values.identifiers import Epoch, SlotId, Term
from controlplane.node import Access, BundleOwnership, FencingToken, Ownership, RoutedBy
from controlplane.node.caller_view import compared, withheld

EPOCHS = st.integers(0, 6).map(Epoch)
KINDS = st.sampled_from([Access.ACCEPT, Access.MIGRATING, Access.MOVED])


def answer(access: Access, since_epoch: int = 5, epoch: int = 9) -> Ownership:
    """An answer of a node for a slot."""
    return Ownership(access, FencingToken(Term(1), Epoch(since_epoch)), Epoch(epoch), "n1", SlotId(3))


def asked(access: Access, since_epoch: int, epoch: int = 9) -> Access:
    """What a caller is answered that goes by a row of this leader epoch."""
    return compared(answer(access), RoutedBy(Epoch(epoch), Epoch(since_epoch))).access


@pytest.mark.parametrize("access", list(Access))
def test_a_caller_that_names_no_row_gets_the_answer_as_it_is(access: Access) -> None:
    """And so does one that goes by the same row."""
    given_answer = answer(access)
    assert compared(given_answer, None) is given_answer
    assert compared(given_answer, RoutedBy(Epoch(9), Epoch(5))) is given_answer


@pytest.mark.parametrize(
    ("access", "older", "newer"),
    [
        (Access.ACCEPT, Access.MISMATCH, Access.MISMATCH),
        (Access.MIGRATING, Access.MIGRATING, Access.MISMATCH),
        (Access.MOVED, Access.MOVED, Access.MISMATCH),
    ],
)
def test_a_caller_with_another_row(access: Access, older: Access, newer: Access) -> None:
    """One that is behind is told where to go; one that is ahead must not be sent away by an older table."""
    assert asked(access, 4) is older
    assert asked(access, 6, epoch=10) is newer


def test_a_caller_that_does_not_know_the_owner_yet_is_served() -> None:
    """A route to a bundle that is handed off has the next owner, and no owner epoch."""
    assert asked(Access.ACCEPT, 0) is Access.ACCEPT


def test_what_the_table_does_not_have_is_unsupported_unless_the_caller_has_a_later_one() -> None:
    """A namespace that was created since."""
    assert asked(Access.UNSUPPORTED, 4, epoch=9) is Access.UNSUPPORTED
    assert asked(Access.UNSUPPORTED, 4, epoch=10) is Access.MISMATCH


@given(KINDS, EPOCHS, EPOCHS)
def test_only_the_same_row_or_an_unknown_one_is_served(access: Access, known: Epoch, asked_by: Epoch) -> None:
    """Whatever else is the answer, nothing but the access changes, and no answer becomes "accept"."""
    ownership = BundleOwnership(access, FencingToken(Term(1), known), Epoch(9), None, "n1")
    judged = compared(ownership, RoutedBy(Epoch(9), asked_by))
    assert judged._replace(access=access) == ownership
    assert judged.access is Access.ACCEPT or (access, asked_by) != (Access.ACCEPT, known)
    if judged.access is Access.ACCEPT:
        assert access is Access.ACCEPT
        assert asked_by in (known, 0)


@pytest.mark.parametrize("access", list(Access))
def test_a_node_that_may_not_serve_sends_no_caller_to_itself(access: Access) -> None:
    """It says "moved". Only an answer that is about another node names one."""
    refused = withheld(answer(access))
    assert refused.access is Access.MOVED
    assert refused.ask == ("n1" if access is Access.MOVED else None)
