"""Fixtures of all scripts and runs."""

from collections.abc import Iterator

import pytest

from tests.simulation.many import prepare
from tests.simulation.memo import decoding_once
from tests.simulation.script import end_scripts


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Processes that are hit by faults complain a lot."""
    prepare()
    with decoding_once():
        yield
        end_scripts()
