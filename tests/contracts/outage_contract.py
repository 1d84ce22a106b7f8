"""What readers and writers of the log promise when the broker goes away and comes back, fake or real."""

import pytest

from controlplane.config import DECISIONS
from controlplane.errors import InvariantViolationError, LogUnavailableError
from controlplane.ports import CommitOutcome
from tests.contracts.log_contract import DECISIONS_0, decision, has_news, opened, values
from tests.contracts.transaction_contract import commit_to_an_outcome
from tests.helpers.log_worlds import LogWorld, open_at_last, read_all, read_to_end, send_all


class OutageContract:
    """The broker goes away and comes back; ``world`` must be able to do that."""

    def test_a_reader_waits_through_an_outage(self, world: LogWorld) -> None:
        """An outage is no news: empty batches, no errors, no ends, and everything afterwards."""
        reader = world.open_reader()
        reader.assign({DECISIONS_0: 0})
        read_to_end(reader, [DECISIONS_0])
        writer = world.open_events()
        send_all(writer, [decision(b"before")])
        assert values(read_to_end(reader, [DECISIONS_0])) == [b"before"]
        world.take_away()
        assert not any(map(has_news, [reader.poll(10, 100) for _ in range(3)]))
        with pytest.raises(LogUnavailableError):
            reader.end_offsets(DECISIONS)
        world.bring_back()
        send_all(writer, [decision(b"after")])
        assert values(read_to_end(reader, [DECISIONS_0])) == [b"after"]
        assert reader.end_offsets(DECISIONS) == {DECISIONS_0: 2}

    def test_a_commit_without_an_answer_is_unknown_and_then_resolved(self, world: LogWorld) -> None:
        """Whatever the answer is in the end, it is what the log says, and nothing is there twice."""
        writer = opened(world)
        assert commit_to_an_outcome(writer, [decision(b"before")]) is CommitOutcome.COMMITTED
        world.take_away()
        assert writer.commit([decision(b"asked")]) is CommitOutcome.UNKNOWN
        assert writer.resolve(200) is CommitOutcome.UNKNOWN
        with pytest.raises(InvariantViolationError):
            writer.commit([decision(b"too early")])
        world.bring_back()
        outcome = writer.resolve(20_000)
        assert outcome in {CommitOutcome.COMMITTED, CommitOutcome.ABORTED}
        assert writer.commit([decision(b"after")]) is CommitOutcome.COMMITTED
        asked = [b"asked"] if outcome is CommitOutcome.COMMITTED else []
        assert values(read_all(world, DECISIONS)) == [b"before", *asked, b"after"]

    def test_opening_without_the_broker_is_an_error_and_works_later(self, world: LogWorld) -> None:
        """A contender that cannot reach Kafka gives the lease back and stands again."""
        writer = world.open_transactions()
        world.take_away()
        with pytest.raises(LogUnavailableError):
            writer.open()
        world.bring_back()
        open_at_last(writer)
        assert writer.commit([decision(b"first")]) is CommitOutcome.COMMITTED

    def test_a_record_is_given_up_after_its_time_and_the_next_one_arrives(self, world: LogWorld) -> None:
        """A heartbeat that has waited for long says nothing any more, and must not hold up the next one."""
        writer = world.open_events()
        send_all(writer, [decision(b"before")])
        world.take_away()
        deliveries: list[str | None] = []
        writer.send(decision(b"old"), lambda delivery: deliveries.append(delivery.error))
        waited_ms = 0
        while not deliveries:
            assert waited_ms < 20_000, "the record was neither delivered nor given up"
            world.let_time_pass(500)
            waited_ms += 500
            writer.poll(0)
        assert deliveries[0] is not None
        with pytest.raises(LogUnavailableError):
            writer.partition_count(DECISIONS)
        world.bring_back()
        assert send_all(writer, [decision(b"new")])[0].error is None
        seen = values(read_all(world, DECISIONS))
        assert [value for value in seen if value != b"old"] == [b"before", b"new"]
