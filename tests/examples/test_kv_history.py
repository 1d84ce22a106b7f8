"""The judge of histories agrees with trying every order, and finds what was forged."""

from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from examples.kv.client import Acknowledged
from examples.kv.history import judge


@st.composite
def histories(draw: st.DrawFn) -> list[Acknowledged]:
    """A few writes of one slot, at any times and with any tokens."""
    writes = []
    for _ in range(draw(st.integers(0, 5))):
        sent_s = draw(st.integers(0, 8))
        answered_s = sent_s + draw(st.integers(0, 4))
        epoch = draw(st.integers(1, 3))
        node = draw(st.sampled_from(["a", "b"]))
        writes.append(Acknowledged(0, node, epoch, draw(st.integers(1, 3)), sent_s, answered_s))
    return writes


def has_an_order(writes: list[Acknowledged]) -> bool:
    """Whether some order of the writes respects time, raises tokens, and gives each token to one node."""
    return any(
        all(not later.answered_s < earlier.sent_s for index, earlier in enumerate(order) for later in order[index:])
        and all((a.leader_epoch, a.counter) < (b.leader_epoch, b.counter) for a, b in pairwise(order))
        and all(a.node_id == b.node_id for a in order for b in order if a.leader_epoch == b.leader_epoch)
        for order in permutations(writes)
    )


@given(histories())
def test_the_verdict_is_that_of_trying_every_order(writes: list[Acknowledged]) -> None:
    """The witness order makes it quick; it must not make it wrong."""
    assert judge(writes).linearizable == has_an_order(writes)


def test_a_stale_write_is_named() -> None:
    """An owner that was replaced and did not know it."""
    history = [
        Acknowledged(7, "a", 3, 1, 0.0, 1.0),
        Acknowledged(7, "b", 5, 1, 1.5, 2.0),
        Acknowledged(7, "a", 3, 2, 2.5, 2.6),
    ]
    verdict = judge(history)
    assert verdict.stale == ("slot 7: a accepted (3, 2), sent 2.500 s, after b had acknowledged (5, 1) at 2.000 s",)
    assert not verdict.doubled


def test_two_owners_under_one_token_are_named() -> None:
    """A token that two nodes hold fences nobody."""
    verdict = judge([Acknowledged(7, "a", 3, 1, 0.0, 1.0), Acknowledged(7, "b", 3, 2, 1.5, 2.0)])
    assert verdict.doubled == ("slot 7: a and b both accepted under 3",)


def test_slots_are_judged_for_themselves() -> None:
    """Tokens of one slot say nothing of another."""
    assert judge([Acknowledged(1, "a", 9, 1, 0.0, 1.0), Acknowledged(2, "b", 3, 1, 2.0, 3.0)]).linearizable
