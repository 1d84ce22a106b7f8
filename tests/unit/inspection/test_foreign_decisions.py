"""Records in ``decisions`` that are none of the cluster's log: everything that reads the log passes them by."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.codec.framing import default_framing
from controlplane.config import DECISIONS, ClusterConfig
from controlplane.core.audit.log_audit import LogAudit
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.decision import Decision
from controlplane.core.log.draft import SealedDecision
from controlplane.core.values.identifiers import Seq, Term
from controlplane.core.verification.log_verification import LogVerification
from controlplane.errors import LogContinuityError, LogUnavailableError, UnsupportedFeatureLevelError
from controlplane.inspection import readers
from controlplane.inspection.auditing import Auditor
from controlplane.inspection.past_states import replay
from controlplane.inspection.terms import terms_backwards
from controlplane.ports import OutgoingRecord, PolledBatch
from controlplane.service.follower import LogFollower
from controlplane.testing import (
    MemoryBroker,
    MemoryEventWriter,
    MemoryLogReader,
    MemoryTransactionalWriter,
    VirtualClock,
)
from tests.golden.samples import sample_of
from tests.helpers.published_world import PublishedWorld
from tests.helpers.sources import source_of

CLUSTER = ClusterConfig("c")
LARGE = sample_of(Decision, "everything")


def foreign_records(decision: Decision) -> Iterator[tuple[bytes, bytes | None]]:
    """Garbage, and what looks like decisions."""
    yield b"", b""
    yield b"nonsense", b"garbage"
    yield b"\xff\x1b", b"\xc3\x01"
    yield b"0", b"\xc3\x01" + b"12345678" + b"a schema that nobody has"
    yield b"7", encode_decision(decision)[0][:-3]
    yield b"7", default_framing().encode("Tick", {"controller_id": "c", "sent_at_ms": 1})
    yield f"{decision.seq}".encode(), encode_decision(replace(decision, log_id="another"))[0]
    yield f"{decision.seq + 1}".encode(), None
    yield b"big", b"x" * 900_000


class Disturbed(PublishedWorld):
    """A cluster in whose log others write after each decision."""

    def commit(self, sealed: SealedDecision) -> None:
        """Commit it, and let the others write."""
        super().commit(sealed)
        for key, value in foreign_records(sealed.decision):
            self.throw(key, value)

    def throw(self, key: bytes, value: bytes | None) -> None:
        """Somebody else writes into the log."""
        MemoryEventWriter(CLUSTER, self.broker).send(OutgoingRecord(DECISIONS, key, value, 0))


def read_all(follower: LogFollower) -> None:
    """Read to the end of what is there."""
    while not follower.poll(0):
        pass


@pytest.fixture(scope="module")
def world() -> Disturbed:
    """Some terms of a disturbed cluster."""
    disturbed = Disturbed(CLUSTER, ClusterPolicy(slot_count=8))
    disturbed.admit("n1", "n2")
    disturbed.run(4_000, ("n1",))
    for term in (2, 3, 7):
        disturbed.open_term(Term(term))
        disturbed.intent(f"refresh {term}", "refresh_table")
        disturbed.run(1_000, ("n1",))
    assert len(disturbed.decisions) > 8
    return disturbed


def test_readers_find_the_decisions_and_no_other(world: Disturbed) -> None:
    """Forwards, backwards, the last ones, by terms."""
    reader = source_of(world.reader())
    assert [logged.decision for logged in readers.read_decisions(reader)] == world.decisions
    assert [logged.decision for logged in readers.decisions_backwards(reader)] == world.decisions[::-1]
    assert [logged.decision for logged in readers.read_last_decisions(reader, 3)] == world.decisions[-3:]
    assert [term.event.term for term in terms_backwards(reader)] == [7, 3, 2, 1]
    assert readers.log_id_of(reader) == "log"


@pytest.mark.parametrize("between", range(1, 4))
def test_decisions_in_parts_are_found_backwards(world: Disturbed, between: int) -> None:
    """Windows begin anywhere: at a foreign record, and behind it in the middle of a decision."""
    broker = MemoryBroker(VirtualClock())
    broker.create_topic(CLUSTER.topic(DECISIONS))
    writer = MemoryEventWriter(CLUSTER, broker)
    large = [replace(LARGE, log_id="log", seq=Seq(100 + number)) for number in range(6)]
    decisions = [*world.decisions, *large]
    for decision in decisions:
        for part in encode_decision(decision, 700):
            writer.send(OutgoingRecord(DECISIONS, decision_key(decision.seq), part, 0))
            for number in range(between):
                writer.send(OutgoingRecord(DECISIONS, f"foreign {number}".encode(), b"garbage", 0))
    reader = source_of(MemoryLogReader(CLUSTER, broker))
    assert [logged.decision for logged in readers.decisions_backwards(reader)] == decisions[::-1]


def test_a_decision_that_is_committed_in_parts_meanwhile_is_no_broken_log(world: Disturbed) -> None:
    """The end was asked for before it: it is left out as a whole, wherever the last batch ends."""
    broker = MemoryBroker(VirtualClock())
    broker.create_topic(CLUSTER.topic(DECISIONS))
    writer = MemoryTransactionalWriter(CLUSTER, broker)
    writer.open()

    def commit(parts: Sequence[bytes], seq: int) -> None:
        writer.commit([OutgoingRecord(DECISIONS, decision_key(Seq(seq)), part, 0) for part in parts])

    class Beside(MemoryLogReader):
        """Of each poll one record; before the first a leader commits."""

        begun = False

        def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
            if not self.begun:
                self.begun = True
                commit(encode_decision(replace(LARGE, log_id="log", seq=Seq(100)), 700), 100)
            return super().poll(min(max_records, 1), timeout_ms)

    for decision in world.decisions:
        commit(encode_decision(decision), decision.seq)
    read = readers.read_decisions(source_of(Beside(CLUSTER, broker)))
    assert [logged.decision for logged in read] == world.decisions
    assert len(list(readers.read_decisions(source_of(MemoryLogReader(CLUSTER, broker))))) == len(world.decisions) + 1


def test_what_comes_is_followed(world: Disturbed) -> None:
    """Also by a reader that began at the end, where the first record that comes may be a foreign one."""
    follower = readers.DecisionFollower(source_of(world.reader()))
    world.throw(b"1", encode_decision(replace(world.decisions[0], log_id="another"))[0])
    world.intent("one more", "refresh_table")
    world.run(1_000, ("n1",))
    assert [logged.decision for logged in follower.poll(0)] == [world.decisions[-1]]


def test_the_state_is_the_one_that_the_decisions_give(world: Disturbed) -> None:
    """For standbys, commands, the verification and the audit alike."""
    follower = LogFollower(world.reader, world.clock)
    read_all(follower)
    assert follower.state == world.state
    assert replay(source_of(world.reader())).state == world.state
    verification = LogVerification()
    complaints = [
        each
        for logged in readers.read_decisions(source_of(world.reader()))
        for each in verification.check(logged.decision)
    ]
    assert complaints == []
    auditor = Auditor(LogAudit(), source_of(world.reader()), source_of(world.reader()))
    assert [each for each in auditor.run() if each.differences] == []


def test_each_foreign_record_is_counted_once() -> None:
    """However often a controller opens the log again."""
    disturbed = Disturbed(CLUSTER, ClusterPolicy(slot_count=8))
    disturbed.admit("n1")
    counted: list[None] = []
    follower = LogFollower(disturbed.reader, disturbed.clock, lambda: counted.append(None))
    with capture_logs() as logs:
        for _ in range(3):
            read_all(follower)
            follower.close()
    per_decision = len(list(foreign_records(disturbed.decisions[0])))
    assert len(counted) == per_decision * len(disturbed.decisions)
    assert {each["event"] for each in logs} == {"foreign record passed by"}
    assert len(logs) < len(counted)


def test_a_decision_of_our_log_that_breaks_the_chain_stops_everybody(world: Disturbed) -> None:
    """That is no foreign record: a leader lost, or forged, decisions of this very log."""
    disturbed = Disturbed(CLUSTER, ClusterPolicy(slot_count=8))
    disturbed.admit("n1")
    forged = replace(disturbed.decisions[-1], seq=Seq(disturbed.state.seq + 7))
    disturbed.throw(b"9", encode_decision(forged)[0])
    follower = LogFollower(disturbed.reader, disturbed.clock)
    with pytest.raises(
        LogContinuityError, match=r"decisions\[0\]@\d+: .* does not continue the log: .*'controlplane acls"
    ):
        read_all(follower)


def test_a_log_that_begins_with_a_schema_of_a_newer_version_stops_everybody() -> None:
    """Nothing before it says that it is foreign; it may be the log of a cluster that began at a later level."""
    empty = PublishedWorld(CLUSTER)
    empty.broker.create_topic(CLUSTER.topic(DECISIONS))
    MemoryEventWriter(CLUSTER, empty.broker).send(OutgoingRecord(DECISIONS, b"1", b"\xc3\x01" + b"12345678", 0))
    with pytest.raises(UnsupportedFeatureLevelError, match=r"decisions\[0\]@0: .*upgrade"):
        LogFollower(empty.reader, empty.clock).poll(0)


def test_the_next_decision_in_a_schema_of_a_newer_version_stops_everybody() -> None:
    """A controller of an older release that led on without it would undo what it says."""
    disturbed = Disturbed(CLUSTER, ClusterPolicy(slot_count=8))
    disturbed.admit("n1")
    disturbed.throw(decision_key(Seq(disturbed.state.seq + 1)), b"\xc3\x01" + b"12345678" + b"body")
    follower = LogFollower(disturbed.reader, disturbed.clock)
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        read_all(follower)
    with pytest.raises(UnsupportedFeatureLevelError, match="upgrade"):
        replay(source_of(disturbed.reader()))


def test_a_log_that_another_one_has_replaced_stops_a_standby() -> None:
    """The new topic has grown beyond where the standby stands: all that comes belongs to another log."""
    first = PublishedWorld(CLUSTER, ClusterPolicy(slot_count=8))
    first.admit("n1")
    follower = LogFollower(lambda: MemoryLogReader(CLUSTER, first.broker), first.clock)
    read_all(follower)
    first.broker.create_topic(CLUSTER.topic(DECISIONS))
    writer = MemoryEventWriter(CLUSTER, first.broker)
    for _ in range(10):
        for decision in first.decisions:
            value = encode_decision(replace(decision, log_id="another"))[0]
            writer.send(OutgoingRecord(DECISIONS, b"1", value, 0))
    with pytest.raises(LogContinuityError, match=r"is no longer there .* recreated"):
        read_all(follower)


def test_what_was_folded_counts_as_read_also_if_kafka_does_not_confirm_the_log() -> None:
    """The records do not come again, and beside a foreign writer that goes on no end is reported."""
    disturbed = Disturbed(CLUSTER, ClusterPolicy(slot_count=8))
    disturbed.admit("n1")
    opened: list[EndlessReader] = []
    is_away = True

    def open_reader() -> EndlessReader:
        if opened and is_away:
            raise LogUnavailableError("no answer")
        opened.append(EndlessReader(CLUSTER, disturbed.broker))
        return opened[-1]

    follower = LogFollower(open_reader, disturbed.clock)
    with pytest.raises(LogUnavailableError):
        read_all(follower)
    is_away = False
    assert follower.state == disturbed.state
    assert follower.poll(0)


class EndlessReader(MemoryLogReader):
    """A reader that never reports the end of the decision log."""

    def poll(self, max_records: int, timeout_ms: int) -> PolledBatch:
        """What there is."""
        batch = super().poll(max_records, timeout_ms)
        return PolledBatch(
            batch.records, {place: end for place, end in batch.ended.items() if place.topic != DECISIONS}
        )
