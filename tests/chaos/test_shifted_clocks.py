"""Clocks of brokers that can be shifted: one for each broker, and none where the machine cannot shift them."""

from pathlib import Path

import pytest

from tests.helpers import shifted_clock
from tests.helpers.shifted_clock import shifted_clocks, why_no_shifted_clocks


def test_each_broker_has_a_clock_of_its_own(tmp_path: Path) -> None:
    """They share the library, and each has a shift of its own."""
    reason = why_no_shifted_clocks()
    if reason is not None:
        pytest.skip(reason)
    clocks = shifted_clocks(tmp_path, 2)
    assert sorted(clocks) == [1, 2]
    assert len({clock.environment["LD_PRELOAD"] for clock in clocks.values()}) == 1
    assert len({clock.environment["CLOCK_SHIFT_FILE"] for clock in clocks.values()}) == 2


def test_there_are_none_where_clocks_cannot_be_shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chaos goes on without faults of clocks then."""
    monkeypatch.setattr(shifted_clock, "why_no_shifted_clocks", lambda: "no compiler")
    assert shifted_clocks(tmp_path, 2) == {}
