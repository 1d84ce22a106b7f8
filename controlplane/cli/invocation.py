"""What the global options say: which cluster is meant and where its parts are.

Addresses that are not given are read from ``addresses.json``, which ``controlplane up`` and ``controlplane demo`` leave
in their folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError

DEFAULT_CLUSTER = "local"
DEFAULT_DATA_DIR = Path(".controlplane")
DEMO_FOLDER = "demo"
"""Where the demo keeps its data, below the data folder."""
DELTA_FOLDER = "delta"
"""Where the pipeline keeps its Delta tables, below a cluster's folder."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The global options of one call of the command.

    Attributes:
        cluster: which cluster.
        given_bootstrap_servers: Kafka's addresses, if given.
        given_redis_url: Redis' address, if given.
        security: further librdkafka settings.
        schema_ids: what a schema registry's ids mean.
        data_dir: the folder of ``controlplane up``.
        connect_timeout_s: how long to try to reach Kafka and Redis.
    """

    cluster: ClusterConfig
    given_bootstrap_servers: str | None
    given_redis_url: str | None
    security: Mapping[str, str]
    schema_ids: Mapping[int, str]
    data_dir: Path
    connect_timeout_s: float

    @property
    def kafka(self) -> KafkaConfig:
        """Where Kafka is.

        Raises:
            ConfigurationError: neither an option nor ``addresses.json`` says it.
        """
        servers = self.given_bootstrap_servers or self._embedded("bootstrap_servers", "--bootstrap-servers")
        return KafkaConfig(servers, self.security, self.schema_ids)

    @property
    def redis_url(self) -> str:
        """Where Redis is.

        Raises:
            ConfigurationError: neither an option nor ``addresses.json`` says it.
        """
        return self.given_redis_url or self._embedded("redis_url", "--redis-url")

    @property
    def redis_place(self) -> str:
        """Where Redis is, without the password that its URL may hold: for messages."""
        parts = urlsplit(self.redis_url)
        return f"Redis at {parts.hostname}:{parts.port}" if parts.port else f"Redis at {parts.hostname or parts.path}"

    @property
    def kafka_place(self) -> str:
        """Where Kafka is, for messages."""
        return f"Kafka at {self.kafka.bootstrap_servers}"

    @property
    def home(self) -> Path:
        """The folder of the cluster's local data: the demo's if only the demo left addresses, else the data folder."""
        from controlplane.embedded.parts import addresses_path

        demo = self.data_dir / DEMO_FOLDER
        if addresses_path(demo).exists() and not addresses_path(self.data_dir).exists():
            return demo
        return self.data_dir

    @property
    def tables_dir(self) -> Path:
        """The folder of the Delta tables: the demo's if only the demo left tables, else that of the data folder."""
        own, demo = self.data_dir / DELTA_FOLDER, self.data_dir / DEMO_FOLDER / DELTA_FOLDER
        return (demo if demo.exists() and not own.exists() else own).absolute()

    def _embedded(self, name: str, option: str) -> str:
        from controlplane.embedded.parts import addresses_path, read_addresses

        path = addresses_path(self.home)
        if not path.exists():
            raise ConfigurationError(
                f"no address: give {option}, or start a local cluster with 'controlplane up' "
                f"(looked for {path}; --data-dir names another folder)"
            )
        return str(getattr(read_addresses(self.home), name))


pass_invocation = click.make_pass_decorator(Invocation)
"""Hands the global options to a command as its first argument."""
