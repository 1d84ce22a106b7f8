"""The contracts of the log, on the in-memory broker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.log_contract import EventWriterContract, ReaderContract, TopicInspectorContract
from tests.contracts.log_histories import History, check_history, histories
from tests.contracts.outage_contract import OutageContract
from tests.contracts.transaction_contract import TransactionContract
from tests.helpers.log_worlds import LogWorld, MemoryLogWorld


@pytest.fixture
def world() -> LogWorld:
    """A broker in memory."""
    return MemoryLogWorld()


class TestMemoryReader(ReaderContract):
    """Reading from memory."""


class TestMemoryTopicInspector(TopicInspectorContract):
    """Topics in memory."""


class TestMemoryEventWriter(EventWriterContract):
    """Single records to memory."""


class TestMemoryTransactionalWriter(TransactionContract):
    """Atomic commits to memory."""


class TestMemoryOutage(OutageContract):
    """A broker in memory that is made unavailable."""


@given(history=histories, skipped=st.integers(min_value=0, max_value=40))
def test_histories_read_as_the_model_says(history: History, skipped: int) -> None:
    """Offsets, gaps and visibility are a function of what was written, the same as on Kafka."""
    check_history(MemoryLogWorld(), history, skipped)
