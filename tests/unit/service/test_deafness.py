"""A partition that is not read on although records stand there is noticed after its time, and not before."""

from structlog.testing import capture_logs

from controlplane.config import HEARTBEATS, INTENTS
from controlplane.core.election.leading import DEAF_AFTER_MS
from controlplane.core.values.identifiers import TopicPartition
from controlplane.service.deafness import DeafnessWatch
from controlplane.testing import VirtualClock

FIRST, SECOND, ASKED = TopicPartition(HEARTBEATS, 0), TopicPartition(HEARTBEATS, 1), TopicPartition(INTENTS, 0)


def test_a_partition_that_is_not_read_on_is_told_of_once() -> None:
    """Whatever else is written there meanwhile, the time counts from the first record that was not read."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    found = []
    with capture_logs() as logs:
        for second in range(15):
            found.append(watch.look({FIRST: 5 + second, SECOND: 5}, {FIRST: 6 + second, SECOND: 6 + second}))
            clock.advance(1_000)
        assert watch.look({FIRST: 30, SECOND: 25}, {FIRST: 31, SECOND: 26}) == set()
    assert [second for second, deaf in enumerate(found) if deaf] == [10, 11, 12, 13, 14]
    assert found[-1] == {SECOND}
    assert [(each["log_level"], each.get("partitions")) for each in logs] == [
        ("error", ["heartbeats[1]"]),
        ("info", None),
    ]


def test_a_partition_that_lags_and_is_read_on_is_not_deaf() -> None:
    """It always lacks something; but what it lacked was read within the time."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    for second in range(60):
        assert watch.look({FIRST: second}, {FIRST: second + 5}) == set()
        clock.advance(1_000)


def test_what_is_not_read_now_or_has_no_known_end_is_not_deaf() -> None:
    """Inputs may be held back on purpose, and a partition without a leader has no ticks."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    for _ in range(2):
        assert watch.look({FIRST: 5}, {ASKED: 9}) == set()
        clock.advance(2 * DEAF_AFTER_MS)


def test_a_controller_that_begins_to_lead_has_the_whole_time() -> None:
    """Two controllers, each deaf to another partition, must not hand over to each other at once."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    watch.look({FIRST: 5}, {FIRST: 6})
    clock.advance(DEAF_AFTER_MS)
    watch.begin_again()
    assert watch.look({FIRST: 5}, {FIRST: 6}) == set()
    clock.advance(DEAF_AFTER_MS)
    assert watch.look({FIRST: 5}, {FIRST: 6}) == {FIRST}


def test_time_in_which_kafka_does_not_answer_of_a_partition_does_not_count() -> None:
    """Until it has a leader again nobody reads it, and then a client needs a moment to find that leader."""
    clock = VirtualClock()
    watch = DeafnessWatch(clock)
    watch.look({FIRST: 5}, {FIRST: 6})
    clock.advance(DEAF_AFTER_MS - 1)
    assert watch.look({FIRST: 5}, {}) == set()
    clock.advance(DEAF_AFTER_MS)
    assert watch.look({FIRST: 5}, {FIRST: 6}) == set()
    clock.advance(DEAF_AFTER_MS)
    assert watch.look({FIRST: 5}, {FIRST: 6}) == {FIRST}
