"""The contract of the lease store, in memory."""

import pytest
from hypothesis import given

from tests.contracts.lease_contract import LeaseContract, LeaseOutageContract, Step, check_lease_history, steps
from tests.helpers.lease_worlds import LeaseWorld, MemoryLeaseWorld


@pytest.fixture
def world() -> LeaseWorld:
    """A lease store in memory."""
    return MemoryLeaseWorld()


class TestMemoryLease(LeaseContract):
    """The lease in memory."""


class TestMemoryLeaseOutage(LeaseOutageContract):
    """A store in memory that is made unavailable."""


@given(history=steps)
def test_histories_have_one_owner_at_a_time(history: list[Step]) -> None:
    """Exclusivity and growing terms hold for any mixture of rivals, expiries and lost data."""
    check_lease_history(MemoryLeaseWorld(), history, duration_ms=10, step_ms=4)
