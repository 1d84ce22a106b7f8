"""Whole controllers over the in-memory world: input records that are refused, and their dead letters."""

import pytest

from controlplane.codec.framing import SINGLE_OBJECT_HEADER_BYTES
from controlplane.codec.inputs import encode_input
from controlplane.config import DEAD_LETTERS, HEARTBEATS, MEMBERSHIP
from controlplane.core.membership.inputs import NodeJoined
from controlplane.core.membership.node import NodeRole
from controlplane.service import input_reader
from tests.helpers.memory_cluster import ObservedCluster


def test_bad_records_become_dead_letters_and_harm_no_neighbour() -> None:
    """Each bad record is named by topic, partition and offset; the good ones around it count."""
    with ObservedCluster() as world:
        world.start("c1")
        world.send(MEMBERSHIP, "x", b"no avro at all")
        world.join("n1")
        world.send(HEARTBEATS, "x", b"\xc3\x01" + b"\x00" * 12, 1)
        world.send(MEMBERSHIP, "x", None)
        world.join("n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
        world.wait_until(lambda: len(world.dead_letters()) >= 3)
        places = {(letter.topic, letter.reason) for letter in world.dead_letters()}
        assert {topic for topic, _ in places} == {MEMBERSHIP, HEARTBEATS}
        assert len(places) == 3


def test_records_in_confluents_framing_count_where_their_ids_are_named() -> None:
    """A node whose producer uses a schema registry takes part; an id that nobody named is a dead letter."""
    joined = encode_input(NodeJoined("n1", 1, NodeRole.DATA, (), "", 1, 0, "1", 0))[SINGLE_OBJECT_HEADER_BYTES:]
    with ObservedCluster(schema_ids={17: "NodeJoined.v1"}) as world:
        world.start("c1")
        world.send(MEMBERSHIP, "n1", b"\x00\x00\x00\x00\x12" + joined)
        world.send(MEMBERSHIP, "n1", b"\x00\x00\x00\x00\x11" + joined)
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        world.wait_until(world.dead_letters)
        assert [(letter.reason, letter.offset) for letter in world.dead_letters()] == [("unknown_schema_id", 0)]


def test_refusals_that_a_dead_leader_did_not_write_are_written_by_its_successor() -> None:
    """At least once: positions are committed only after the dead letters, and standbys keep what is not passed."""
    with ObservedCluster() as world:
        world.send(MEMBERSHIP, "x", b"garbage")
        world.start("c1")
        world.wait_until(world.dead_letters)
        world.send(MEMBERSHIP, "x", b"garbage too")
        second = world.start("c2")
        world.wait_until(lambda: len(world.dead_letters()) >= 2)
        assert second.alive


def test_refused_heartbeats_whose_letters_have_no_place_hold_no_join_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their topic may be away for days, and up to 10,000 of them wait for it; nodes join meanwhile."""
    monkeypatch.setattr(input_reader, "_MOST_PENDING", 10)
    with ObservedCluster() as world:
        world.start("c1")
        world.broker.lose_leader(world.cluster.topic(DEAD_LETTERS), 0)
        for _ in range(30):
            world.send(HEARTBEATS, "x", b"garbage", 0)
        read = world.records(HEARTBEATS)[-1].offset
        world.wait_until(lambda: world.records(HEARTBEATS)[-1].offset > read + 5)
        world.join("n1", "n2")
        world.wait_until(lambda: set(world.owners().values()) == {"n1", "n2"})
