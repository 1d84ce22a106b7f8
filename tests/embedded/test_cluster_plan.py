"""Who is who in a cluster of several servers, without starting one."""

import json
import socket
from pathlib import Path

import pytest

from controlplane.embedded.kafka import LOG_FOLDER, EmbeddedKafka
from controlplane.embedded.kafka_cluster import (
    CLUSTER_FILE,
    EmbeddedKafkaCluster,
    brokers_in,
    cluster_settings,
    controller_ids,
)
from controlplane.embedded.kafka_settings import ServerRole, settings_text
from controlplane.embedded.server import HOST, PortTakenError, free_port
from controlplane.embedded.services import EmbeddedServices, FolderRefusedError
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import ConfigurationError, PrerequisiteError


@pytest.mark.parametrize(
    ("brokers", "controllers_apart", "controllers"),
    [(2, False, [1]), (3, False, [1, 2, 3]), (4, False, [1, 2, 3]), (2, True, [101, 102, 103])],
)
def test_three_brokers_have_three_controllers(
    tmp_path: Path, brokers: int, controllers_apart: bool, controllers: list[int]
) -> None:
    """Two controllers would be worse than one: either's end stops Kafka."""
    cluster = EmbeddedKafkaCluster(tmp_path, brokers, controllers_apart=controllers_apart)
    assert list(cluster.brokers) == list(range(1, brokers + 1))
    assert list(cluster.controller_ports) == controllers
    assert list(controller_ids(brokers, controllers_apart=controllers_apart)) == controllers
    assert list(cluster.controllers) == (controllers if controllers_apart else [])


@pytest.fixture
def no_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers prepare their folder as for a first start, and are not started."""

    def launch(server: EmbeddedKafka) -> None:
        server.check_port()
        storage = server.data_dir / LOG_FOLDER / "meta.properties"
        storage.parent.mkdir(exist_ok=True)
        storage.touch()

    monkeypatch.setattr(EmbeddedKafka, "launch", launch)
    monkeypatch.setattr(EmbeddedKafka, "wait_until_it_answers", lambda _: None)
    monkeypatch.setattr(EmbeddedKafkaCluster, "wait_until_registered", lambda _: None)
    monkeypatch.setattr(EmbeddedValkey, "start", lambda _: None)


@pytest.mark.usefixtures("no_server_runs")
def test_a_folder_keeps_its_cluster(tmp_path: Path) -> None:
    """Ports stay over restarts; another number of brokers would leave copies behind that no broker serves."""
    first = EmbeddedKafkaCluster(tmp_path)
    first.start()
    assert EmbeddedKafkaCluster(tmp_path).bootstrap_servers == first.bootstrap_servers
    assert brokers_in(tmp_path) == 3
    with pytest.raises(PrerequisiteError, match="holds a Kafka cluster of 3 brokers"):
        EmbeddedKafkaCluster(tmp_path, 4)
    with pytest.raises(PrerequisiteError, match="holds a Kafka cluster of 3 brokers"):
        EmbeddedKafkaCluster(tmp_path, controllers_apart=True)
    moved = EmbeddedKafkaCluster(tmp_path, first_port=21_000)
    assert [broker.port for broker in moved.brokers.values()] == [21_000, 21_001, 21_002]
    with pytest.raises(ConfigurationError, match="need ports above 65535: the first one's can be 65533 at most"):
        EmbeddedKafkaCluster(tmp_path, first_port=65_534)
    (tmp_path / CLUSTER_FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(PrerequisiteError, match="is damaged"):
        brokers_in(tmp_path)


@pytest.mark.usefixtures("no_server_runs")
def test_services_take_the_former_number_of_brokers(tmp_path: Path) -> None:
    """A second run finds the data of the first, and mixes no single broker with several."""
    with EmbeddedServices(tmp_path / "several", brokers=3) as several:
        assert len(several.brokers) == 3
    assert len(EmbeddedServices(tmp_path / "several").brokers) == 3
    with EmbeddedServices(tmp_path / "single") as single:
        assert len(single.brokers) == 1
    with pytest.raises(FolderRefusedError, match="holds the data of 1 broker, not of 3"):
        EmbeddedServices(tmp_path / "single", brokers=3)


@pytest.mark.usefixtures("no_server_runs")
@pytest.mark.parametrize("first", [1, 2])
def test_a_start_that_failed_binds_no_folder(tmp_path: Path, first: int) -> None:
    """No server has run there, so another number of brokers and other ports are as good as in a new folder."""
    with socket.socket() as other_program:
        other_program.bind((HOST, 0))
        taken = other_program.getsockname()[1]
        port = taken if first == 1 else taken - 1
        services = EmbeddedServices(tmp_path, kafka_port=port, brokers=first)
        with pytest.raises(PortTakenError, match=f"port {taken} of 127.0.0.1 is taken"):
            services.start()
    assert len(EmbeddedServices(tmp_path).brokers) == 1
    again = EmbeddedServices(tmp_path, brokers=3)
    again.start()
    assert brokers_in(tmp_path / "kafka") == 3
    assert taken not in {broker.port for broker in again.brokers.values()}
    again.stop()


def test_a_plan_without_data_is_replaced(tmp_path: Path) -> None:
    """A start may also fail behind its ports, for example because there is no Java."""
    plan = {"cluster_id": "id", "broker_ports": {"1": 1, "2": 2}, "controller_ports": {"1": 3}}
    (tmp_path / CLUSTER_FILE).write_text(json.dumps(plan), encoding="utf-8")
    assert len(EmbeddedKafkaCluster(tmp_path).brokers) == 3
    assert [broker.port for broker in EmbeddedKafkaCluster(tmp_path, 2).brokers.values()] == [1, 2]


def test_a_controller_apart_has_no_listener_of_clients() -> None:
    """Kafka refuses to start a controller that names a broker's listener."""
    role = ServerRole("controller-101", 101, "id", {101: 7}, 7, is_broker=False)
    text = settings_text(role, [], Path("log"), cluster_settings(3))
    assert "process.roles=controller\n" in text
    assert "listeners=CONTROLLER://127.0.0.1:7\n" in text
    assert "advertised.listeners" not in text
    assert "inter.broker" not in text


@pytest.mark.parametrize("settings", [{}, cluster_settings(3), {"node.id": "7", "log.cleaner.backoff.ms": "10"}])
def test_each_setting_is_written_once(settings: dict[str, str]) -> None:
    """Which of two lines counts is not to be seen in the file, and a comment may explain the one that does not."""
    text = settings_text(ServerRole.alone(1), [], Path("log"), settings)
    pairs = [line.partition("=") for line in text.splitlines() if line and not line.startswith("#")]
    written = {name: value for name, _, value in pairs}
    assert len(written) == len(pairs)
    assert written.items() >= settings.items()
    assert written["transaction.state.log.num.partitions"] == "4"
    assert ("After a crash" in text) == ("broker.session.timeout.ms" not in settings), "a comment without its lines"


def test_no_port_is_chosen_twice() -> None:
    """A cluster with a listener for each process chooses a hundred ports before its first server listens on one."""
    ports = [free_port() for _ in range(500)]
    assert len(set(ports)) == len(ports)
