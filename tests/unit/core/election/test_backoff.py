"""How long a controller backs off, and is not preferred: long enough for others, and bounded."""

import pytest

from controlplane.core.election.backoff import PAUSE_MS, BackoffReason, Failures, backoff_ms

LEASE_MS = 2_000
LAST_DRAW = 1 - 2**-53


@pytest.mark.parametrize(
    ("reason", "failures", "shortest_ms", "longest_ms"),
    [
        (BackoffReason.STEPPED_DOWN, 0, 500, 1_999),
        (BackoffReason.STEPPED_DOWN, 5, 500, 1_999),
        (BackoffReason.FAILED, 1, 2_000, 3_999),
        (BackoffReason.FAILED, 2, 4_000, 7_999),
        (BackoffReason.FAILED, 3, 8_000, 15_999),
        (BackoffReason.FAILED, 4, 8_000, 15_999),
        (BackoffReason.FAILED, 10_000, 8_000, 15_999),
        (BackoffReason.CUT_OFF, 3, 400, 599),
        (BackoffReason.RESIGNED, 3, 2_000, 2_000),
    ],
)
def test_how_long_the_lease_is_left_to_others(
    reason: BackoffReason, failures: int, shortest_ms: int, longest_ms: int
) -> None:
    """Chance decides between two bounds; only failures in a row move them, and not for ever."""
    assert backoff_ms(reason, LEASE_MS, failures, 0.0) == shortest_ms
    assert backoff_ms(reason, LEASE_MS, failures, LAST_DRAW) == longest_ms


def test_a_controller_that_is_cut_off_looks_again_before_it_asks() -> None:
    """Its back-off is longer than the pause after which the machine decides anew."""
    assert backoff_ms(BackoffReason.CUT_OFF, LEASE_MS, 0, 0.0) > PAUSE_MS


def test_a_controller_that_hands_over_leaves_others_a_whole_lease() -> None:
    """Each of them asks several times in it."""
    for reason in (BackoffReason.FAILED, BackoffReason.RESIGNED):
        assert backoff_ms(reason, LEASE_MS, 1, 0.0) >= LEASE_MS


def _failed(times: int) -> Failures:
    failures = Failures()
    for _ in range(times):
        failures = failures.one_more(failures.unfit_until_ms, LEASE_MS)
    return failures


@pytest.mark.parametrize(("times", "leases"), [(1, 2), (2, 4), (3, 8), (6, 64), (10, 1_024), (11, 1_024), (500, 1_024)])
def test_each_failure_in_a_row_doubles_how_long_nobody_prefers_it(times: int, leases: int) -> None:
    """Long after it asks again: a free lease is one thing, one that somebody leads under is another."""
    before = _failed(times - 1)
    failures = before.one_more(before.unfit_until_ms, LEASE_MS)
    assert failures.in_a_row == times
    unfit_ms = failures.unfit_until_ms - before.unfit_until_ms
    assert unfit_ms == leases * LEASE_MS
    assert unfit_ms > backoff_ms(BackoffReason.FAILED, LEASE_MS, times, LAST_DRAW)


@pytest.mark.parametrize(("quiet_leases", "in_a_row"), [(0, 5), (1_024, 5), (1_025, 1)])
def test_failures_of_long_ago_do_not_count(quiet_leases: int, in_a_row: int) -> None:
    """As long after the last one as the longest time in which nobody prefers it."""
    failures = _failed(4)
    assert failures.one_more(failures.unfit_until_ms + quiet_leases * LEASE_MS, LEASE_MS).in_a_row == in_a_row
