"""Fixtures for every test that needs a real broker or a real lease store; loaded by ``tests/conftest.py``.

``kafka_broker`` and ``valkey_server`` are shared by the session: take a fresh ``cluster_name``, which prefixes every
topic and key. A test that stops, kills or pauses a server takes one of its own from ``own_kafka_broker`` or
``own_valkey_server``. Whoever asks for a broker gets the marker ``kafka``.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.certificates import Authority
from tests.helpers.secured_kafka import SecuredKafka

BROKER_FIXTURES = frozenset({"kafka_broker", "own_kafka_broker", "secured_kafka"})

_cluster_names_given = 0


class BrokerFactory(Protocol):
    """Starts a broker for one test alone."""

    def __call__(self, **settings: str) -> EmbeddedKafka:
        """A started broker; ``log_cleaner_backoff_ms="100"`` sets ``log.cleaner.backoff.ms``."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark every test that starts a broker, whichever fixture asks for it, so that ``-m 'not kafka'`` leaves it out."""
    if BROKER_FIXTURES.intersection(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.kafka)


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """One running broker for the whole session; never stop or pause it."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedValkey]:
    """One running lease store for the whole session; never stop or pause it."""
    with EmbeddedValkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(scope="session")
def secured_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """One broker that asks for logins and rights, for the whole session; never stop or pause it."""
    folder = tmp_path_factory.mktemp("secured-kafka")
    with SecuredKafka(folder / "kafka", Authority(folder / "certificates")) as broker:
        yield broker


@pytest.fixture
def own_kafka_broker(tmp_path: Path) -> Iterator[BrokerFactory]:
    """Starts brokers (4 s each) that this test may stop, kill and pause; they end with the test."""
    with ExitStack() as stack:

        def start(**settings: str) -> EmbeddedKafka:
            number = len(list(tmp_path.glob("kafka-*")))
            dotted = {name.replace("_", "."): value for name, value in settings.items()}
            return stack.enter_context(EmbeddedKafka(tmp_path / f"kafka-{number}", settings=dotted))

        yield start


@pytest.fixture
def own_valkey_server(tmp_path: Path) -> Iterator[Callable[[], EmbeddedValkey]]:
    """Starts lease stores that this test may stop, kill and pause; they end with the test."""
    with ExitStack() as stack:

        def start() -> EmbeddedValkey:
            number = len(list(tmp_path.glob("valkey-*")))
            return stack.enter_context(EmbeddedValkey(tmp_path / f"valkey-{number}"))

        yield start


@pytest.fixture
def cluster_name(request: pytest.FixtureRequest) -> str:
    """A cluster name that no other test of this session has, with the test's own name in it."""
    global _cluster_names_given  # noqa: PLW0603 - the session's one counter
    _cluster_names_given += 1
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return f"{words[:40]}-{_cluster_names_given}"
