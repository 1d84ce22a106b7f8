"""The Kafka that a benchmark runs on."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane.embedded.kafka import EmbeddedKafka


@contextmanager
def kafka_servers(given: str | None) -> Iterator[str]:
    """The ``host:port`` list of a broker: the given one, or a new one that ends with the block."""
    if given:
        yield given
        return
    print("starting Kafka ...", flush=True)
    with tempfile.TemporaryDirectory() as folder, EmbeddedKafka(Path(folder)) as kafka:
        yield kafka.bootstrap_servers
