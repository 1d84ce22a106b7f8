"""``up`` looks after what it started."""

import socket
from pathlib import Path

import pytest

from controlplane.cli.cluster.up import start_progress
from controlplane.cli.common.failures import ExitStatus
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.kafka_cluster import EmbeddedKafkaCluster
from controlplane.embedded.server import HOST
from controlplane.embedded.services import EmbeddedServices
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.commands import RunCommand


def test_a_part_that_ends_by_itself_ends_the_command(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A screen that says it is ready above a dead Kafka is worse than no cluster."""
    for kind in (EmbeddedKafka, EmbeddedValkey):
        monkeypatch.setattr(kind, "start", lambda _: None)
        monkeypatch.setattr(kind, "stop", lambda _: None)
    monkeypatch.setattr(EmbeddedKafka, "running", property(lambda _: False))
    monkeypatch.setattr(EmbeddedKafka, "end", property(lambda _: "by SIGKILL"))
    ran = command("up", "--data-dir", str(tmp_path))
    assert ran.status == ExitStatus.FAILED
    assert "Kafka ended by itself, by SIGKILL: look at the end of" in ran.err


def test_every_broker_that_ended_is_named(command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The log of one of three may say nothing: its process was killed."""
    for kind in (EmbeddedKafka, EmbeddedKafkaCluster, EmbeddedValkey):
        monkeypatch.setattr(kind, "start", lambda _: None)
        monkeypatch.setattr(kind, "stop", lambda _: None)
    monkeypatch.setattr(EmbeddedKafka, "end", property(lambda broker: f"with exit code {broker.data_dir.name[-1]}"))
    ran = command("up", "--data-dir", str(tmp_path), "--brokers", "3")
    for number in "123":
        log = tmp_path / "kafka" / f"broker-{number}" / "logs" / f"broker-{number}.log"
        assert f"broker-{number} with exit code {number}: {log}" in ran.err


def test_the_end_of_one_broker_is_told_with_its_cause(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A signal has another cause than an exit code."""
    services, told = EmbeddedServices(tmp_path, brokers=3), list[str]()
    monkeypatch.setattr(EmbeddedKafka, "running", property(lambda broker: broker.data_dir.name != "broker-2"))
    monkeypatch.setattr(EmbeddedValkey, "running", property(lambda _: True))
    monkeypatch.setattr(EmbeddedKafka, "end", property(lambda _: "by SIGKILL"))
    services.look_after(told.append)
    assert len(told) == 1
    assert told[0].startswith("broker 2 ended by SIGKILL; it is started again in 10 s")


@pytest.mark.parametrize(
    ("brokers", "ended"),
    [("1", "Kafka and Valkey"), ("2", "the 2 brokers and Valkey"), ("3", "the 3 brokers and Valkey")],
)
def test_what_ctrl_c_ends_is_said(
    command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, brokers: str, ended: str
) -> None:
    """Controllers and nodes run in terminals of their own, and go on without Kafka until they are ended there."""
    for kind in (EmbeddedKafka, EmbeddedKafkaCluster, EmbeddedValkey):
        monkeypatch.setattr(kind, "start", lambda _: None)
        monkeypatch.setattr(kind, "stop", lambda _: None)
    ran = command("up", "--data-dir", str(tmp_path), "--brokers", brokers)
    assert f"Ctrl-C ends {ended}; controllers and nodes that you have started go on" in ran.err
    assert ("broker 1 is Kafka's only controller" in ran.err) == (brokers == "2")


def test_options_that_help_are_named(command: RunCommand, tmp_path: Path) -> None:
    """The parts know no options; the command does."""
    with socket.socket() as other_program:
        other_program.bind((HOST, 0))
        taken = str(other_program.getsockname()[1])
        ran = command("up", "--data-dir", str(tmp_path), "--redis-port", taken)
    assert ran.status == ExitStatus.FAILED
    assert (
        f"port {taken} of 127.0.0.1 is taken by another program: stop that one, or choose another port with" in ran.err
    )
    assert "--redis-port" in ran.err
    (tmp_path / "kafka" / "log").mkdir()
    (tmp_path / "kafka" / "log" / "meta.properties").touch()
    ran = command("up", "--data-dir", str(tmp_path), "--brokers", "3")
    assert "holds the data of 1 broker, not of 3: take another folder with --data-dir" in ran.err


def test_too_high_a_port_is_a_wrong_call(command: RunCommand, tmp_path: Path) -> None:
    """As any other setting that cannot be."""
    ran = command("up", "--data-dir", str(tmp_path), "--brokers", "3", "--kafka-port", "65534")
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert "can be 65533 at most (--kafka-port)" in ran.err


def test_a_start_is_seen_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Three brokers take a quarter of a minute for their first start on a small machine."""
    assert start_progress(EmbeddedServices(tmp_path / "1"), 2.04) == "Kafka does not answer yet (2 s)"
    services = EmbeddedServices(tmp_path / "3", brokers=3)
    started = {"broker-1", "broker-2"}
    monkeypatch.setattr(EmbeddedKafka, "pid", property(lambda each: 7 if each.data_dir.name in started else None))
    services.brokers[2].answered = True
    assert start_progress(services, 6) == "2 of 3 brokers started, 1 of 3 answering (6 s)"
