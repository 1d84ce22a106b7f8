"""A leader leaves the lease when Kafka answers others about an input partition, and not it."""

from dataclasses import replace

import pytest

from controlplane.core.election.leading import DEAF_AFTER_MS, NOT_HELD, RoundObserved
from controlplane.core.election.steps import ControllerPhase, ControllerTrigger
from tests.unit.core.election.test_leading import LEASE_MS, LOOKED, TAKE_OVER, Driven, after

UNREACHED = replace(LOOKED, longest_unanswered_ms=5_001, contender_unanswered_ms=2_000)
"""A broker does not answer this controller, and answers a contender."""


def _look(machine: Driven, *rounds: RoundObserved) -> list[ControllerTrigger]:
    """Let a leader see this, one round each 5 s; the triggers."""
    seen = []
    for number, each in enumerate(rounds):
        machine.tell(each, now_ms=number * DEAF_AFTER_MS // 2)
        seen.append(machine.last_trigger)
        if machine.state.phase is ControllerPhase.LEADING:
            machine.tell(ControllerTrigger.NOTHING_TO_COMMIT, now_ms=number * DEAF_AFTER_MS // 2)
    return seen


def test_a_leader_that_misses_a_partition_of_which_a_contender_is_answered_steps_down() -> None:
    """It neither sees a record there nor learns that one stands there: only the contender's answers show it."""
    held = ControllerTrigger.LEASE_HELD
    assert _look(after(TAKE_OVER), UNREACHED, UNREACHED, UNREACHED) == [held, held, ControllerTrigger.DEAF]


@pytest.mark.parametrize(
    "seen",
    [
        replace(UNREACHED, contender_unanswered_ms=None),
        replace(UNREACHED, contender_unanswered_ms=2_001),
        replace(UNREACHED, longest_unanswered_ms=5_000),
        replace(UNREACHED, longest_unanswered_ms=60_000, contender_unanswered_ms=5_001 + LEASE_MS),
        replace(UNREACHED, since_acknowledged_ms=LEASE_MS + 1, contender_ahead_ms=None),
    ],
)
def test_a_leader_stays_where_no_contender_is_known_to_be_answered(seen: RoundObserved) -> None:
    """The partition has no leader, the store is silent or holds a former release's note, or no controller is heard."""
    assert set(_look(after(TAKE_OVER), *[seen] * 9)) == {ControllerTrigger.LEASE_HELD}
    assert set(_look(after(TAKE_OVER), UNREACHED, UNREACHED, seen, UNREACHED, UNREACHED)) == {
        ControllerTrigger.LEASE_HELD
    }


def test_a_note_may_be_as_old_as_a_lease() -> None:
    """Notes are exchanged when leases are renewed, and a long lease is renewed seldom."""
    held = ControllerTrigger.LEASE_HELD
    old = replace(UNREACHED, longest_unanswered_ms=60_000, contender_unanswered_ms=5_000 + LEASE_MS)
    assert _look(after(TAKE_OVER), old, UNREACHED, old) == [held, held, ControllerTrigger.DEAF]


def test_a_controller_that_misses_a_partition_is_not_preferred_also_if_it_has_never_led() -> None:
    """It may have been started again: what it knew of the partition ended with the process before."""
    machine = after([ControllerTrigger.DONE])
    unanswered, new = replace(LOOKED, longest_unanswered_ms=5_001), replace(LOOKED, has_answers=False)
    for seen, is_fit in ((new, False), (LOOKED, True), (unanswered, False), (LOOKED, True)):
        machine.tell(seen, hold=NOT_HELD)
        assert machine.is_fit(0) is is_fit


def test_a_controller_that_misses_a_partition_is_not_preferred_until_it_is_answered() -> None:
    """It would be given the lease back, and step down again."""
    machine = after(TAKE_OVER)
    _look(machine, UNREACHED, UNREACHED, UNREACHED)
    machine.tell(ControllerTrigger.DONE, now_ms=DEAF_AFTER_MS)
    machine.tell(UNREACHED, now_ms=DEAF_AFTER_MS, hold=NOT_HELD)
    assert not machine.is_fit(DEAF_AFTER_MS)
    machine.tell(LOOKED, now_ms=DEAF_AFTER_MS, hold=NOT_HELD)
    assert machine.is_fit(DEAF_AFTER_MS)


def test_time_before_a_controller_leads_does_not_count() -> None:
    """Two controllers, each without another broker, must not hand over to each other at once."""
    machine = after([ControllerTrigger.DONE])
    machine.tell(UNREACHED, hold=NOT_HELD)
    for event in TAKE_OVER:
        machine.tell(UNREACHED if isinstance(event, RoundObserved) else event, now_ms=2 * DEAF_AFTER_MS)
    machine.tell(UNREACHED, now_ms=2 * DEAF_AFTER_MS)
    assert machine.state.phase is ControllerPhase.LEADING
