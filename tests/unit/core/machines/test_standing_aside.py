"""How long a controller stays away from the lease: long enough for others, never the same for two, and bounded."""

import pytest

from controlplane.core.machines.standing_aside import PAUSE_MS, Absence, absence_ms

LEASE_MS = 2_000
LAST_DRAW = 1 - 2**-53


@pytest.mark.parametrize(
    ("absence", "failures", "shortest_ms", "longest_ms"),
    [
        (Absence.FALLEN, 0, 500, 1_999),
        (Absence.FALLEN, 5, 500, 1_999),
        (Absence.FAILED, 1, 2_000, 3_999),
        (Absence.FAILED, 2, 4_000, 7_999),
        (Absence.FAILED, 3, 8_000, 15_999),
        (Absence.FAILED, 4, 8_000, 15_999),
        (Absence.FAILED, 10_000, 8_000, 15_999),
        (Absence.CUT_OFF, 3, 400, 599),
        (Absence.RESIGNED, 3, 2_000, 2_000),
    ],
)
def test_how_long_the_lease_is_left_to_others(
    absence: Absence, failures: int, shortest_ms: int, longest_ms: int
) -> None:
    """Chance decides between two bounds; only failures in a row move them, and not for ever."""
    assert absence_ms(absence, LEASE_MS, failures, 0.0) == shortest_ms
    assert absence_ms(absence, LEASE_MS, failures, LAST_DRAW) == longest_ms


def test_whoever_is_cut_off_looks_again_before_it_asks() -> None:
    """It does not ask before the pause is over in which it was not to ask."""
    assert absence_ms(Absence.CUT_OFF, LEASE_MS, 0, 0.0) > PAUSE_MS


def test_whoever_hands_over_leaves_others_a_whole_lease() -> None:
    """Each of them asks several times in it."""
    for absence in (Absence.FAILED, Absence.RESIGNED):
        assert absence_ms(absence, LEASE_MS, 1, 0.0) >= LEASE_MS
