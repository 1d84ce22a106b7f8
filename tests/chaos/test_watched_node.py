"""The watch of a node writes down what its agent accepts, and calls that outlast that."""

import io
import random
from typing import cast

import pytest

from controlplane.core.values.identifiers import Epoch, SlotId, Term
from controlplane.node import Access, BundleOwnership, FencingToken, NodeAgent, Ownership
from controlplane.node.held_bundle import AcceptedBundleRequest
from controlplane.node.served_request import ServedBundleRequest, ServedSlotRequest
from controlplane.node.slot_releases import AcceptedSlotRequest
from tests.chaos import watched_node
from tests.chaos.served import Process, ServedWriter, Serving, read_lines
from tests.chaos.watched_node import KEYS, NAMESPACES, SLOTS, Watch

N1 = Process("n1", 10)
TOKEN = FencingToken(Term(1), Epoch(5))
LONG_US = 1_000_000


class Agent:
    """Accepts the slots and keys that it is told to; calls stay valid until it is told that they are void."""

    def __init__(self) -> None:
        self.slots: set[SlotId] = set()
        self.keys: set[tuple[str, str]] = set()
        self.is_valid = True
        self.calls = 0

    def ownership(self, slot_id: SlotId) -> Ownership:
        """Whether the slot is accepted."""
        return Ownership(_access(slot_id in self.slots), TOKEN, Epoch(9), "n1")

    def bundle_of(self, namespace: str, key: str) -> BundleOwnership:
        """Whether the key is accepted."""
        return BundleOwnership(_access((namespace, key) in self.keys), TOKEN, Epoch(9), None, None)

    def serve_slot(self, slot_id: SlotId) -> ServedSlotRequest:
        """A call for a slot."""
        return ServedSlotRequest(
            lambda: (self.ownership(slot_id), self._accepted(AcceptedSlotRequest({slot_id}))), _ignore, self._valid
        )

    def serve(self, namespace: str, key: str) -> ServedBundleRequest:
        """A call for a key."""
        return ServedBundleRequest(lambda: (self.bundle_of(namespace, key), None), _ignore, self._valid)

    def _accepted(self, call: AcceptedSlotRequest) -> AcceptedSlotRequest:
        self.calls += 1
        return call

    def _valid(self) -> bool:
        return self.is_valid


def _access(is_accepted: bool) -> Access:
    return Access.ACCEPT if is_accepted else Access.MOVED


def _ignore(_: AcceptedBundleRequest | AcceptedSlotRequest) -> None:
    pass


class Watched:
    """A watch of such an agent under a clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.agent, self._stream, self.now_us = Agent(), io.BytesIO(), 0
        monkeypatch.setattr(watched_node, "_now_us", lambda: self.now_us)
        writer = ServedWriter(cast("io.RawIOBase", self._stream))
        self._watch = Watch(cast("NodeAgent", self.agent), writer, random.Random(1))

    def look(self, at_us: int) -> None:
        """Look at this time."""
        self.now_us = at_us
        self._watch.look()

    def read(self) -> list[Serving]:
        """What was written down so far."""
        return read_lines(N1, self._stream.getvalue().splitlines(keepends=True))[0]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """A watch under a clock that is set by hand."""
    return Watched(monkeypatch)


def test_slots_and_keys_are_written_down_while_they_are_accepted(watched: Watched) -> None:
    """Nothing that is not accepted, or not watched, is."""
    watched.agent.slots = {SLOTS[1], SlotId(1)}
    watched.agent.keys = {(NAMESPACES[0], KEYS[2]), (NAMESPACES[0], "else")}
    for at_us in (0, 10_000, 20_000):
        watched.look(at_us)
    served = {each.thing: (each.began_us, each.ended_us) for each in watched.read()}
    assert served == {f"slot {SLOTS[1]}": (0, 20_000), f"{KEYS[2]} of {NAMESPACES[0]}": (0, 20_000)}


def test_a_call_that_outlasts_the_acceptance_is_written_down_if_its_right_has_held(watched: Watched) -> None:
    """The release waits for it: whatever is served by another one before its end is an overlap."""
    watched.agent.slots = {SLOTS[0]}
    watched.look(0)
    assert watched.agent.calls == 1
    watched.agent.slots = set()
    watched.look(10)
    watched.look(LONG_US)
    assert Serving(f"slot {SLOTS[0]}", N1, TOKEN, 0, LONG_US) in watched.read()


def test_a_call_that_was_voided_is_not(watched: Watched) -> None:
    """Its answer would not say that it was carried out."""
    watched.agent.slots = {SLOTS[0]}
    watched.look(0)
    watched.agent.slots, watched.agent.is_valid = set(), False
    watched.look(LONG_US)
    assert [(each.began_us, each.ended_us) for each in watched.read()] == [(0, 0)]


def test_calls_follow_one_another_with_rests(watched: Watched) -> None:
    """One at a time for each thing, for as long as it is accepted."""
    watched.agent.slots = {SLOTS[0]}
    for number in range(200):
        watched.look(number * 10_000)
    assert 10 < watched.agent.calls < 100
