"""The values of the global options: the cluster and the addresses of its services.

Addresses that are not given are read from ``addresses.json``, which ``controlplane up`` and ``controlplane demo`` leave
in their folder.
"""

import getpass
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import click

from controlplane.cli.common.connecting import reach
from controlplane.config import SASL_USER, ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError, RetryableError

DEFAULT_CLUSTER = "local"
DEFAULT_DATA_DIR = Path(".controlplane")
DEMO_FOLDER = "demo"
"""The demo's folder, below the data folder."""
DELTA_FOLDER = "delta"
"""The folder of the pipeline's Delta tables, below a cluster's folder."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The global options of one call of the command.

    Attributes:
        cluster: its name and settings.
        given_bootstrap_servers: Kafka's addresses, if given.
        given_redis_url: Redis' address, if given; it may hold a password.
        security: further librdkafka settings; they may hold passwords and keys.
        schema_ids: the schemas of a registry's ids.
        data_dir: the folder of ``controlplane up``.
        connect_timeout_s: how long to try to reach Kafka and Redis.
        given_principal: the principal of intents, if given.
    """

    cluster: ClusterConfig
    given_bootstrap_servers: str | None
    given_redis_url: str | None = field(repr=False)
    security: Mapping[str, str] = field(repr=False)
    schema_ids: Mapping[int, str]
    data_dir: Path
    connect_timeout_s: float
    given_principal: str | None = None

    @property
    def principal(self) -> str:
        """The principal of intents: the given one, or that of the login to Kafka, or the system's user."""
        return self.given_principal or self.security.get(SASL_USER) or getpass.getuser()

    @property
    def kafka(self) -> KafkaConfig:
        """Kafka's addresses and security settings.

        Raises:
            ConfigurationError: neither an option nor ``addresses.json`` has them.
            UnreachableError: a local cluster is being started, and took too long.
        """
        servers = self.given_bootstrap_servers or self._embedded("bootstrap_servers", "--bootstrap-servers")
        return KafkaConfig(servers, self.security, self.schema_ids)

    @property
    def redis_url(self) -> str:
        """The URL of Redis.

        Raises:
            ConfigurationError: neither an option nor ``addresses.json`` has it.
        """
        return self.given_redis_url or self._embedded("redis_url", "--redis-url")

    @property
    def knows_redis(self) -> bool:
        """Whether an option or ``addresses.json`` has the URL of this cluster's Redis."""
        from controlplane.embedded.services import addresses_path, read_addresses

        if self.given_redis_url is not None or not addresses_path(self.home).exists():
            return self.given_redis_url is not None
        return self.given_bootstrap_servers in {None, read_addresses(self.home).bootstrap_servers}

    @property
    def redis_place(self) -> str:
        """Redis and its address for messages, without the password that the URL may contain."""
        parts = urlsplit(self.redis_url)
        try:
            port = parts.port
        except ValueError:
            return "Redis"  # a misread address: what is taken for a port may be a part of the password
        return f"Redis at {parts.hostname}:{port}" if port else f"Redis at {parts.hostname or parts.path}"

    @property
    def kafka_place(self) -> str:
        """Kafka and its address, for messages."""
        return f"Kafka at {self.kafka.bootstrap_servers}"

    @property
    def home(self) -> Path:
        """The folder of the cluster's local data: the demo's if only that has addresses, else the data folder."""
        from controlplane.embedded.services import addresses_path

        demo = self.data_dir / DEMO_FOLDER
        if addresses_path(demo).exists() and not addresses_path(self.data_dir).exists():
            return demo
        return self.data_dir

    @property
    def tables_dir(self) -> Path:
        """The folder of the Delta tables of the cluster that the other commands use.

        If no address is known, no cluster runs. Then it is the demo's folder if only that has tables.
        """
        from controlplane.embedded.services import addresses_path, read_addresses

        demo = self.data_dir / DEMO_FOLDER
        home = self.home
        if addresses_path(home).exists():
            servers = self.given_bootstrap_servers
            elsewhere = servers is not None and servers != read_addresses(home).bootstrap_servers
            home = self.data_dir if elsewhere else home
        elif self.given_bootstrap_servers is None and not (home / DELTA_FOLDER).exists():
            home = demo if (demo / DELTA_FOLDER).exists() else home
        return (home / DELTA_FOLDER).absolute()

    def _embedded(self, name: str, option: str) -> str:
        from controlplane.embedded.services import addresses_path, read_addresses

        if not addresses_path(self.home).exists():
            self._wait_for_start()
        path = addresses_path(self.home)
        if not path.exists():
            raise ConfigurationError(
                f"no address: give {option}, or start a local cluster with 'controlplane up' "
                f"(looked for {path}; --data-dir names another folder)"
            )
        return str(getattr(read_addresses(self.home), name))

    def _wait_for_start(self) -> None:
        """Wait for the services of the folder while a process is starting them.

        Raises:
            UnreachableError: they did not come up within ``--connect-timeout``.
        """
        from controlplane.embedded.services import addresses_path, in_use

        folders = (self.data_dir, self.data_dir / DEMO_FOLDER)

        def look() -> None:
            if any(in_use(folder) and not addresses_path(folder).exists() for folder in folders):
                raise RetryableError("it is being started")

        reach(f"the local cluster in {self.data_dir}, which is starting,", self.connect_timeout_s, look)


pass_invocation = click.make_pass_decorator(Invocation)
"""Passes the global options to a command as its first argument."""
