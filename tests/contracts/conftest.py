"""The contract suites are plain modules, so pytest has to be told to explain their assertions."""

import pytest

pytest.register_assert_rewrite(
    "tests.contracts.lease_contract",
    "tests.contracts.lease_notes_contract",
    "tests.contracts.log_contract",
    "tests.contracts.log_histories",
    "tests.contracts.outage_contract",
    "tests.helpers.log_worlds",
)
