"""Who is who in a cluster of several servers, without starting one."""

from pathlib import Path

import pytest

from controlplane.embedded.kafka_cluster import (
    CLUSTER_FILE,
    EmbeddedKafkaCluster,
    brokers_in,
    cluster_settings,
    controller_ids,
)
from controlplane.embedded.kafka_settings import ServerRole, settings_text
from controlplane.embedded.server import free_port
from controlplane.embedded.services import EmbeddedServices
from controlplane.errors import PrerequisiteError


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


def test_a_folder_keeps_its_cluster(tmp_path: Path) -> None:
    """Ports stay over restarts; another number of brokers would leave copies behind that no broker serves."""
    first = EmbeddedKafkaCluster(tmp_path)
    assert EmbeddedKafkaCluster(tmp_path).bootstrap_servers == first.bootstrap_servers
    assert brokers_in(tmp_path) == 3
    with pytest.raises(PrerequisiteError, match="holds a Kafka cluster of 3 brokers"):
        EmbeddedKafkaCluster(tmp_path, 4)
    with pytest.raises(PrerequisiteError, match="holds a Kafka cluster of 3 brokers"):
        EmbeddedKafkaCluster(tmp_path, controllers_apart=True)
    moved = EmbeddedKafkaCluster(tmp_path, first_port=21_000)
    assert [broker.port for broker in moved.brokers.values()] == [21_000, 21_001, 21_002]
    with pytest.raises(PrerequisiteError, match="need ports above 65535"):
        EmbeddedKafkaCluster(tmp_path, first_port=65_534)
    (tmp_path / CLUSTER_FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(PrerequisiteError, match="is damaged"):
        brokers_in(tmp_path)


def test_services_take_the_former_number_of_brokers(tmp_path: Path) -> None:
    """A second run finds the data of the first, and mixes no single broker with several."""
    assert len(EmbeddedServices(tmp_path / "several", brokers=3).brokers) == 3
    assert len(EmbeddedServices(tmp_path / "several").brokers) == 3
    assert len(EmbeddedServices(tmp_path / "single").brokers) == 1
    with pytest.raises(PrerequisiteError, match="holds the data of 1 brokers, not of 3"):
        EmbeddedServices(tmp_path / "single", brokers=3)


def test_a_controller_apart_has_no_listener_of_clients() -> None:
    """Kafka refuses to start a controller that names a broker's listener."""
    role = ServerRole("controller-101", 101, "id", {101: 7}, 7, is_broker=False)
    text = settings_text(role, [], Path("log"), cluster_settings(3))
    assert "process.roles=controller\n" in text
    assert "listeners=CONTROLLER://127.0.0.1:7\n" in text
    assert "advertised.listeners" not in text
    assert "inter.broker" not in text
    assert text.index("min.isr=1") < text.index("min.isr=2"), "the last line counts"


def test_no_port_is_chosen_twice() -> None:
    """A cluster with a listener for each process chooses a hundred ports before its first server listens on one."""
    ports = [free_port() for _ in range(500)]
    assert len(set(ports)) == len(ports)
