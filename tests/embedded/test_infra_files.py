"""The files for containers and production say the same as the services that we start ourselves."""

import subprocess
from pathlib import Path

import pytest

from controlplane.embedded import valkey
from controlplane.embedded.kafka_settings import ServerRole, settings_text
from controlplane.embedded.server import HOST, free_port
from tests.helpers.polling import poll_until
from tests.helpers.redis_wire import ask_redis

INFRA = Path(__file__).parents[2] / "infra"

OWN_TO_ONE_PROCESS = ("controller.quorum", "listener", "advertised", "inter.broker", "log.dirs", "num.", "background.")
"""Addresses, and numbers of threads: a container has others."""


def embedded_settings() -> list[tuple[str, str]]:
    """The broker settings that every one-machine broker of ours has."""
    text = settings_text(ServerRole.alone(1), [], Path("log"), {})
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = [(line.split("=", 1)[0], line.split("=", 1)[1]) for line in lines]
    return [(name, value) for name, value in pairs if not name.startswith(OWN_TO_ONE_PROCESS)]


@pytest.mark.parametrize(("name", "value"), embedded_settings())
def test_container_broker_has_the_embedded_settings(name: str, value: str) -> None:
    """What works with `controlplane up` has to work with the containers: fencing and stalls depend on these numbers."""
    variable = "KAFKA_" + name.replace(".", "_").upper()
    lines = [line.strip() for line in (INFRA / "compose.yaml").read_text(encoding="utf-8").splitlines()]
    assert f"{variable}: {value}" in lines or f'{variable}: "{value}"' in lines


def test_lease_store_takes_the_production_configuration(tmp_path: Path) -> None:
    """A misspelt line in a configuration file is found here, not at two in the morning."""
    port = free_port()
    command = [str(valkey.server_program()), str(INFRA / "redis" / "valkey.conf")]
    options = ["--bind", HOST, "--port", str(port), "--dir", str(tmp_path)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            poll_until(lambda: server.poll() is not None or ask_redis(port, "PING") == b"+PONG\r\n")
            assert server.poll() is None, server.stdout.read() if server.stdout else b""
            assert b"appendonly\r\n$3\r\nyes" in ask_redis(port, "CONFIG", "GET", "appendonly")
            assert b"noeviction" in ask_redis(port, "CONFIG", "GET", "maxmemory-policy")
        finally:
            server.terminate()
