"""The terms of a log, found without reading the log."""

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.config import DECISIONS, ClusterConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.values.identifiers import Seq, Term
from controlplane.inspection import terms
from controlplane.inspection.terms import LoggedTerm, terms_backwards
from controlplane.ports import OutgoingRecord, PolledBatch
from controlplane.testing import MemoryBroker, MemoryLogReader, MemoryTransactionalWriter, VirtualClock
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sources import source_of

CLUSTER = ClusterConfig("c")


class CountingReader(MemoryLogReader):
    """Counts the records that are fetched."""

    fetched = 0

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """As the reader does."""
        batch = super().poll(max_records, timeout_ms)
        self.fetched += len(batch.records)
        return batch


@cache
def _opening_and_another() -> tuple[Decision, Decision]:
    """A decision that opens a term, and one with many slots, which may be cut into parts."""
    world = PublishedWorld(CLUSTER, ClusterPolicy(slot_count=16))
    world.admit("n1", "n2")
    return world.decisions[0], world.decisions[-1]


def log_of(lengths: list[tuple[int, int]], part_bytes: int) -> tuple[MemoryBroker, list[tuple[int, int, int]]]:
    """A log with terms of (how far above the last, how many decisions); and each term, first seq, last seq."""
    broker = MemoryBroker(VirtualClock())
    broker.create_topic(CLUSTER.topic(DECISIONS))
    writer = MemoryTransactionalWriter(CLUSTER, broker)
    writer.open()
    opening, another = _opening_and_another()
    term, seq, expected = 0, 0, []
    for step, length in lengths:
        term += step
        expected.append((term, seq + 1, seq + length))
        for number in range(length):
            seq += 1
            decision = replace(opening if number == 0 else another, term=Term(term), seq=Seq(seq))
            values = encode_decision(decision, part_bytes)
            writer.commit([OutgoingRecord(DECISIONS, decision_key(decision.seq), value, 0) for value in values])
    return broker, expected


def seqs_of(term: LoggedTerm) -> tuple[int, int, int]:
    """Term, first and last seq."""
    return term.opened.decision.term, term.opened.decision.seq, term.last.decision.seq


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 3, 20])), max_size=5),
    st.sampled_from([1_000, 900_000]),
    st.sampled_from([1, 2, 5]),
)
def test_every_term_is_found_with_its_first_and_its_last_decision(
    lengths: list[tuple[int, int]], part_bytes: int, step: int
) -> None:
    """Whatever their lengths, whether decisions have parts, and where terms were never opened."""
    broker, expected = log_of(lengths, part_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terms, "_FIRST_STEP", step)
        found = [seqs_of(term) for term in terms_backwards(source_of(MemoryLogReader(CLUSTER, broker)))]
    assert found == expected[::-1]


def test_a_long_term_costs_a_few_small_reads() -> None:
    """Ten million decisions behind it must not make the history slow."""
    broker, expected = log_of([(1, 5), (1, 4_000), (1, 3)], 900_000)
    reader = CountingReader(CLUSTER, broker)
    found = [seqs_of(term) for term in terms_backwards(source_of(reader))]
    assert found == expected[::-1]
    assert reader.fetched < 600
