"""The embedded broker and lease store, as processes: start, stop, crash, freeze, and never outlive their parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.server import EmbeddedServer
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import PrerequisiteError
from tests.fixtures import BrokerFactory
from tests.helpers.polling import poll_until
from tests.helpers.redis_wire import ask_redis


def append_and_count(broker: EmbeddedKafka) -> int:
    """Append one record to the topic ``log`` and say how many it holds."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    producer.produce("log", b"record")
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused"})
    low, high = consumer.get_watermark_offsets(TopicPartition("log", 0), timeout=20)
    consumer.close()
    return int(high - low)


@pytest.mark.slow
def test_broker_keeps_data_and_address_over_stop_and_crash(own_kafka_broker: BrokerFactory) -> None:
    """Clients and tests that restart a broker have to find their records at the address that they know."""
    broker = own_kafka_broker()
    address = broker.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("log", 1, 1)])["log"].result(20)
    assert append_and_count(broker) == 1
    broker.stop()
    assert not broker.running
    broker.start()
    assert append_and_count(broker) == 2
    broker.kill()
    assert not broker.running
    again = EmbeddedKafka(broker.data_dir)
    assert again.bootstrap_servers == address
    with again:
        assert append_and_count(again) == 3


@pytest.mark.slow
def test_paused_broker_is_silent_until_resumed(troubled_kafka: EmbeddedKafka) -> None:
    """Tests of slow brokers rely on a pause that answers nothing and loses nothing."""
    broker = troubled_kafka
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.list_topics(timeout=10)
    broker.pause()
    assert broker.running
    with pytest.raises(Exception, match=r"(?i)timed out|transport"):
        admin.list_topics(timeout=0.5)
    broker.resume()
    assert admin.list_topics(timeout=20).brokers


def test_broker_that_cannot_start_shows_its_log(own_kafka_broker: BrokerFactory) -> None:
    """A start that fails has to say why, not only that it took too long."""
    with pytest.raises(PrerequisiteError, match=r"(?s)formatted.*log\.segment\.bytes"):
        own_kafka_broker(log_segment_bytes="not-a-number")
    broker = own_kafka_broker()
    broker.stop()
    damaged = EmbeddedKafka(broker.data_dir, settings={"log.segment.bytes": "not-a-number"})
    with pytest.raises(PrerequisiteError, match=r"(?s)exit code 1 .*log\.segment\.bytes"):
        damaged.start()
    assert not damaged.running


def test_lease_store_keeps_data_over_a_crash_and_forgets_on_request(
    own_valkey_server: Callable[[], EmbeddedValkey],
) -> None:
    """Elections are tested against a store that comes back with its data and against one that comes back empty."""
    server = own_valkey_server()
    url = server.redis_url
    assert ask_redis(server.port, "SET", "term", "7") == b"+OK\r\n"
    server.stop()
    server.start()
    assert server.redis_url == url
    assert ask_redis(server.port, "GET", "term") == b"$1\r\n7\r\n"
    with pytest.raises(PrerequisiteError, match="running"):
        server.erase_data()
    server.kill()
    server.erase_data()
    server.start()
    assert ask_redis(server.port, "GET", "term") == b"$-1\r\n"


def test_paused_lease_store_can_still_be_stopped(own_valkey_server: Callable[[], EmbeddedValkey]) -> None:
    """A frozen process gets no SIGTERM before it goes on; stopping must not hang on that."""
    server = own_valkey_server()
    server.pause()
    with pytest.raises(TimeoutError):
        ask_redis(server.port, "PING")
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 4
    assert not server.running


def test_taken_port_is_named_in_the_error(own_valkey_server: Callable[[], EmbeddedValkey], tmp_path: Path) -> None:
    """Two servers on one port: the second must not mistake the first one's answer for its own."""
    first = own_valkey_server()
    second = EmbeddedValkey(tmp_path / "second", port=first.port)
    with pytest.raises(PrerequisiteError, match=f"port {first.port} of 127.0.0.1 is taken"):
        second.start()


@pytest.mark.parametrize("paused", [False, True])
def test_server_ends_when_its_parent_is_killed(tmp_path: Path, *, paused: bool) -> None:
    """SIGKILL leaves the parent no time to tidy up; a server left behind would hold its port and its data."""
    program = (
        "import sys, time; from pathlib import Path; from controlplane.embedded.valkey import EmbeddedValkey\n"
        "server = EmbeddedValkey(Path(sys.argv[1])); server.start()\n"
        + ("server.pause()\n" if paused else "")
        + "print(server._server_pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    server_pid = int(parent.stdout.readline())
    os.kill(server_pid, 0)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    poll_until(lambda: not psutil.pid_exists(server_pid))


def test_a_start_that_is_interrupted_leaves_no_server_behind(tmp_path: Path) -> None:
    """Nobody is told of the server then, so nobody else could stop it."""
    before, begun = psutil.Process().children(recursive=True), list[psutil.Process]()

    class Interrupted(EmbeddedServer):
        def _prepare(self) -> Sequence[str]:
            return [sys.executable, "-c", "import time; time.sleep(600)"]

        def _answers(self) -> bool:
            begun.extend(each for each in psutil.Process().children(recursive=True) if each not in before)
            raise KeyboardInterrupt

    server = Interrupted("server", tmp_path, None, start_deadline_s=10, stop_grace_s=5)
    with pytest.raises(KeyboardInterrupt):
        server.start()
    assert not server.running
    assert len(begun) == 2
    assert not any(process.is_running() for process in begun)


@pytest.mark.parametrize(
    ("program", "end"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL"),
        ("raise SystemExit(143)", "by SIGTERM"),
        ("raise SystemExit(3)", "with exit code 3"),
        ("raise SystemExit(250)", "with exit code 250"),
    ],
)
def test_how_a_server_ended_is_known(tmp_path: Path, program: str, end: str) -> None:
    """Its log says nothing of a SIGKILL, for example of a system that is out of memory."""

    class Short(EmbeddedServer):
        def _prepare(self) -> Sequence[str]:
            return [sys.executable, "-c", program]

        def _answers(self) -> bool:
            return False

    server = Short("short", tmp_path, None, start_deadline_s=5, stop_grace_s=1)
    assert server.end == ""
    with pytest.raises(PrerequisiteError, match=f"short ended {end} while starting"):
        server.start()
