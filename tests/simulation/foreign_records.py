"""Foreign records for every topic: garbage, and records that look valid."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from controlplane.codec.decisions import encode_decision
from controlplane.codec.inputs import encode_input
from controlplane.codec.table import encode_row
from controlplane.config import (
    DEAD_LETTERS,
    DECISIONS,
    HEARTBEATS,
    INTENTS,
    LOAD_REPORTS,
    MEMBERSHIP,
    ROUTING_TABLE,
    SNAPSHOTS,
)
from controlplane.core.membership.inputs import Tick
from controlplane.core.routing.rows import MARKER_KEY, EpochMarker, slot_key
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.ports import RawRecord
from controlplane.topic_reading.decision_stream import DecisionStream
from tests.simulation.world import World

_TOPICS: Final = (HEARTBEATS, MEMBERSHIP, INTENTS, LOAD_REPORTS, DECISIONS, ROUTING_TABLE, SNAPSHOTS, DEAD_LETTERS)
_MOST_OF_A_TOPIC: Final = 4
_HUGE_BYTES: Final = 300_000
"""More than an input may have."""

_Foreign: TypeAlias = tuple[bytes, bytes | None]


def throw_foreign_records(world: World, choose: random.Random) -> None:
    """Some of them into each partition of each topic."""
    for topic in _TOPICS:
        for number, partition in enumerate(world.broker.partitions(world.cluster.topic(topic))):
            records = [
                RawRecord(topic, number, each.offset, each.append_time_ms, each.key, each.value)
                for each in partition.read(partition.start_offset, 1 << 30).records
            ]
            for _ in range(choose.randint(1, _MOST_OF_A_TOPIC)):
                kinds = [_garbage, *_LOOKALIKES.get(topic, ())]
                for key, value in choose.choice(kinds)(choose, records):
                    world.throw(topic, number, key, value)


def _garbage(choose: random.Random, _: list[RawRecord]) -> Iterator[_Foreign]:
    """Keys that are no text, control characters, formats of others, values of any length."""
    key = b"~" + choose.choice((b"", b"\xff\xfe", b"\x00\x1b[2J\n", choose.randbytes(8)))
    values = (
        b"",
        b"{}",
        b"\xc3\x01",
        b"\xc3\x01" + choose.randbytes(20),
        choose.randbytes(40),
        bytes(_HUGE_BYTES),
        None,
    )
    yield key, choose.choice(values)


def _overwritten(choose: random.Random, records: list[RawRecord]) -> Iterator[_Foreign]:
    """A key that is really there, with nonsense or nothing."""
    if records:
        yield choose.choice(records).key or b"", choose.choice((b"nonsense", b"", None))


def _swapped(choose: random.Random, records: list[RawRecord]) -> Iterator[_Foreign]:
    """A value that is really there, under the key of another one."""
    rows = [record for record in records if record.key != MARKER_KEY.encode()]
    if rows:
        yield choose.choice(rows).key or b"", choose.choice(rows).value


def _rows(choose: random.Random, _: list[RawRecord]) -> Iterator[_Foreign]:
    """A row that looks valid, of an existing slot or not, and one of an unknown kind."""
    slot_id = choose.randrange(200)
    yield slot_key(slot_id).encode(), encode_row(Slot(slot_id, "intruder", (), Epoch(1)))
    yield b"main/ring/1", b"\xc3\x01" + b"12345678"


def _markers(choose: random.Random, _: list[RawRecord]) -> Iterator[_Foreign]:
    """The marker of another log, and nonsense in its place."""
    number = choose.randrange(100)
    marker = EpochMarker(Term(number), Epoch(number), Seq(number), "another", number, "", "0" * 16)
    yield MARKER_KEY.encode(), choose.choice((encode_row(marker), b"nonsense", None))


def _decisions(choose: random.Random, records: list[RawRecord]) -> Iterator[_Foreign]:
    """A decision of another log, whole or cut off, and a record that is none."""
    stream = DecisionStream()
    whole = [decision for decision in map(stream.take, records) if decision is not None]
    if whole:
        decision = choose.choice(whole)
        value = encode_decision(replace(decision, log_id="another"))[0]
        yield str(decision.seq).encode(), choose.choice((value, value[:-5]))
    yield b"1", encode_input(Tick("~", 1))


_LOOKALIKES: Final[Mapping[str, tuple[Callable[[random.Random, list[RawRecord]], Iterator[_Foreign]], ...]]] = {
    ROUTING_TABLE: (_overwritten, _swapped, _rows, _markers),
    DECISIONS: (_decisions,),
    SNAPSHOTS: (_overwritten, _swapped),
    DEAD_LETTERS: (_overwritten,),
}
