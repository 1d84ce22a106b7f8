"""What every transactional writer of the log promises, fake or real; see :mod:`tests.contracts.log_contract`."""

import pytest

from controlplane.config import DECISIONS, HEARTBEATS, ROUTING_TABLE
from controlplane.errors import ConfigurationError, FencedError, InvariantViolationError, PrerequisiteError
from controlplane.ports import CommitOutcome, OutgoingRecord, TransactionalWriter
from tests.contracts.log_contract import DECISIONS_0, MURMUR2, TABLE_0, decision, opened, values
from tests.helpers.log_worlds import LogWorld, read_all, read_some, read_to_end, read_until_ended, send_all


def commit_to_an_outcome(writer: TransactionalWriter, records: list[OutgoingRecord]) -> CommitOutcome:
    """Commit, and ask again while the outcome is unknown."""
    outcome = writer.commit(records)
    while outcome is CommitOutcome.UNKNOWN:
        outcome = writer.resolve(1_000)
    return outcome


class TransactionContract:
    """Atomic commits: all or nothing, one writer, hidden until committed."""

    def test_keys_choose_partitions_as_java_clients_do(self, world: LogWorld) -> None:
        """A record goes to the same place whether it is committed with others or sent alone."""
        opened(world).commit([OutgoingRecord(HEARTBEATS, key, b"") for key in MURMUR2])
        places = {record.key: record.partition for record in read_all(world, HEARTBEATS)}
        assert places == {key: (value & 0x7FFFFFFF) % 3 for key, value in MURMUR2.items()}

    def test_a_commit_is_visible_in_every_topic_in_order(self, world: LogWorld) -> None:
        """Decision, rows and marker are one unit; rows keep their order."""
        rows = [OutgoingRecord(ROUTING_TABLE, b"main/slot/%d" % i, b"row") for i in range(300)]
        assert opened(world).commit([decision(b"d"), *rows]) is CommitOutcome.COMMITTED
        assert values(read_all(world, DECISIONS)) == [b"d"]
        assert [record.key for record in read_all(world, ROUTING_TABLE)] == [row.key for row in rows]

    def test_a_writer_commits_again_and_again(self, world: LogWorld) -> None:
        """One leadership makes many decisions."""
        writer = opened(world)
        assert {writer.commit([decision(b"%d" % i)]) for i in range(5)} == {CommitOutcome.COMMITTED}
        assert values(read_all(world, DECISIONS)) == [b"0", b"1", b"2", b"3", b"4"]

    def test_an_open_transaction_hides_itself_and_what_follows(self, world: LogWorld) -> None:
        """Readers stop at the last stable offset: no half epoch, and no record out of order."""
        opened(world).commit([decision(b"before")])
        commit = world.leave_transaction_open([decision(b"open")])
        send_all(world.open_events(), [decision(b"after")])
        reader = world.open_reader()
        assert reader.end_offsets(DECISIONS) == {DECISIONS_0: 2}
        reader.assign({DECISIONS_0: 0})
        assert values(read_to_end(reader, [DECISIONS_0])) == [b"before"]
        assert commit()
        assert values(read_some(reader, 2)) == [b"open", b"after"]

    def test_an_aborted_transaction_is_never_seen(self, world: LogWorld) -> None:
        """What was aborted is in Kafka's log all the same; only read_committed hides it."""
        world.abort_transaction([decision(b"aborted")])
        opened(world).commit([decision(b"committed")])
        assert [(record.offset, record.value) for record in read_all(world, DECISIONS)] == [(2, b"committed")]

    def test_opening_fences_an_idle_writer(self, world: LogWorld) -> None:
        """A leader that lost its lease without noticing must not commit one record more."""
        former = opened(world)
        assert former.commit([decision(b"former")]) is CommitOutcome.COMMITTED
        latter = opened(world)
        assert former.commit([decision(b"late")]) is CommitOutcome.FENCED
        assert latter.commit([decision(b"latter")]) is CommitOutcome.COMMITTED
        assert values(read_all(world, DECISIONS)) == [b"former", b"latter"]

    def test_opening_aborts_a_transaction_that_was_left_open(self, world: LogWorld) -> None:
        """A leader that died between begin and commit must not commit later, and holds readers back no longer."""
        commit = world.leave_transaction_open([decision(b"lost")])
        latter = opened(world)
        assert not commit()
        assert latter.commit([decision(b"latter")]) is CommitOutcome.COMMITTED
        assert values(read_all(world, DECISIONS)) == [b"latter"]

    def test_a_barrier_is_behind_all_that_was_acknowledged_and_before_the_end_that_a_reader_finds(
        self, world: LogWorld
    ) -> None:
        """Only so can a new leader tell an end that is up to date; no reader is to take the barrier for a decision."""
        former = opened(world)
        former.commit([decision(b"former"), OutgoingRecord(ROUTING_TABLE, b"k", b"row")])
        deliveries = send_all(world.open_events(), [decision(b"single")])
        writer = opened(world)
        barrier = writer.write_barrier([decision(b"barrier"), OutgoingRecord(ROUTING_TABLE, b"k", b"barrier", 0)])
        assert barrier == {DECISIONS_0: deliveries[0].offset + 1, TABLE_0: 2}
        reader = world.open_reader()
        reader.assign(dict.fromkeys(barrier, 0))
        ends = read_until_ended(reader, list(barrier))
        assert all(ends[place].offset >= offset for place, offset in barrier.items())
        assert writer.commit([decision(b"next")]) is CommitOutcome.COMMITTED
        assert values(read_all(world, DECISIONS)) == [b"former", b"single", b"next"]
        assert values(read_all(world, ROUTING_TABLE)) == [b"row"]

    def test_a_barrier_is_behind_the_records_of_its_own_transaction_alone(self, world: LogWorld) -> None:
        """Offsets of a former commit would name ends that were passed long ago."""
        writer = opened(world)
        writer.commit([OutgoingRecord(ROUTING_TABLE, b"k", b"row")])
        assert writer.write_barrier([decision(b"barrier")]) == {DECISIONS_0: 0}

    def test_a_fenced_writer_writes_no_barrier(self, world: LogWorld) -> None:
        """Its end would be up to date for a moment only: the later writer commits behind it."""
        former, latter = opened(world), opened(world)
        with pytest.raises(FencedError):
            former.write_barrier([decision(b"barrier")])
        assert latter.write_barrier([decision(b"barrier")])

    def test_a_fenced_writer_stays_fenced_until_it_opens_again(self, world: LogWorld) -> None:
        """Standing again needs a new opening, which in turn fences the rival."""
        former, latter = opened(world), opened(world)
        assert former.commit([decision(b"late")]) is CommitOutcome.FENCED
        with pytest.raises(InvariantViolationError):
            former.commit([decision(b"later")])
        former.open()
        assert former.commit([decision(b"again")]) is CommitOutcome.COMMITTED
        assert latter.commit([decision(b"late")]) is CommitOutcome.FENCED
        assert values(read_all(world, DECISIONS)) == [b"again"]

    def test_calls_out_of_order_are_refused(self, world: LogWorld) -> None:
        """Committing nothing would succeed even when fenced; resolving nothing would hide a lost outcome."""
        writer = world.open_transactions()
        with pytest.raises(InvariantViolationError):
            writer.commit([decision(b"not open")])
        with pytest.raises(InvariantViolationError):
            writer.write_barrier([decision(b"not open")])
        writer.open()
        with pytest.raises(InvariantViolationError):
            writer.commit([])
        with pytest.raises(InvariantViolationError):
            writer.resolve(100)

    def test_a_record_for_a_missing_topic_aborts_the_whole(self, world: LogWorld) -> None:
        """The rest must not be committed without it; trying the same again would not help, so it is an error."""
        writer = opened(world)
        with pytest.raises(PrerequisiteError, match="no-such-topic"):
            commit_to_an_outcome(writer, [decision(b"lost"), OutgoingRecord("no-such-topic", b"k", b"v")])
        assert writer.commit([decision(b"next")]) is CommitOutcome.COMMITTED
        assert values(read_all(world, DECISIONS)) == [b"next"]

    def test_a_record_that_is_too_large_aborts_the_whole(self, world: LogWorld) -> None:
        """The decision would be there without one of its rows, and its marker would never match."""
        writer = opened(world)
        with pytest.raises(ConfigurationError, match="too large"):
            writer.commit([decision(b"lost"), decision(bytes(2_000_000))])
        assert writer.commit([decision(b"next")]) is CommitOutcome.COMMITTED
        assert values(read_all(world, DECISIONS)) == [b"next"]
