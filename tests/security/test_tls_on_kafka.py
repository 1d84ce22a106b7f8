"""TLS and logins through every part: passwords, salted passwords and certificates, with Kafka and the lease store."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest
import redis
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from controlplane.adapters.kafka_acls import apply_acls
from controlplane.adapters.kafka_log import KafkaLogReader
from controlplane.bootstrap.access_roles import access_roles
from controlplane.bootstrap.members import routing_client
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import LogUnavailableError
from controlplane.kafka_rules.acls_file import grants_of
from tests.helpers.certificates import Authority
from tests.helpers.redis_users import rules_of
from tests.helpers.roles_at_work import DEADLINE_S, SecuredCluster, running_controller
from tests.helpers.secured_kafka import SUPER_USER, SecuredKafka, password_of
from tests.helpers.tls_front import TlsFront

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LEASE_PASSWORD = "open-sesame-of-the-lease"  # noqa: S105 - looked for in everything that is shown
SECRETS = (LEASE_PASSWORD, *(password_of(user) for user in ("controller", "reader", "operator", SUPER_USER)))


@pytest.fixture
def lease_url(valkey_server: EmbeddedValkey, secured_kafka: SecuredKafka, cluster_name: str) -> Iterator[str]:
    """The lease store under TLS, for a user that may reach this cluster's keys only."""
    user = f"user-{cluster_name}"
    # One user for both: the controller, and the operator who looks at the lease of either profile.
    rights = [rule for rule in rules_of("controlplane-operator", cluster_name) if rule.startswith("+")]
    rules = [*rules_of("controlplane-controller", cluster_name), *rights, "on", f">{LEASE_PASSWORD}"]
    with redis.Redis.from_url(valkey_server.redis_url) as admin:
        admin.execute_command("ACL", "SETUSER", user, "reset", *rules)
        with TlsFront(valkey_server.port, secured_kafka.authority.sign("lease-store")) as front:
            ca = quote(str(secured_kafka.authority.certificate), safe="/")
            yield f"rediss://{user}:{LEASE_PASSWORD}@127.0.0.1:{front.port}/0?ssl_ca_certs={ca}"
        admin.execute_command("ACL", "DELUSER", user)


def login_file(folder: Path, name: str, security: Mapping[str, str]) -> Path:
    """The settings as ``--security`` takes them."""
    path = folder / f"{name}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in security.items()), encoding="utf-8")
    return path


def test_every_part_speaks_tls_and_shows_no_secret(
    secured_kafka: SecuredKafka, lease_url: str, cluster_name: str, tmp_path: Path
) -> None:
    """A controller and an operator by password, a client by salted password, a node by its certificate."""
    servers, above = secured_kafka.tls_password_servers, secured_kafka.tls_login(SUPER_USER)
    cluster = SecuredCluster(cluster_name, servers, above, lease_url, tmp_path)
    cluster.create_topics()
    named = [("controller", "User:controller"), ("reader", "User:salted"), ("operator", "User:operator")]
    grants = grants_of(access_roles(), [*named, ("node", "User:CN=edge-1")])
    apply_acls(servers, cluster_name, grants, above)
    salt(secured_kafka, "salted", password_of("reader"))
    certificate = secured_kafka.authority.sign("edge-1")
    node_login = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(secured_kafka.authority.certificate),
        "ssl.certificate.location": str(certificate.certificate),
        "ssl.key.location": str(certificate.key),
    }
    reader_login = {**secured_kafka.tls_login("reader", "SCRAM-SHA-256"), "sasl.username": "salted"}
    controller_login = login_file(tmp_path, "controller", secured_kafka.tls_login("controller"))
    operator_login = login_file(tmp_path, "operator", secured_kafka.tls_login("operator"))
    said: list[str] = []
    with running_controller(cluster, controller_login, "--log-level", "debug"):
        with (tmp_path / "node.log").open("wb") as output:
            node = subprocess.Popen(
                [
                    *(sys.executable, "-m", "controlplane.cli", "--cluster", cluster_name, "--log-level", "debug"),
                    *("--bootstrap-servers", secured_kafka.tls_servers),
                    *("--security", str(login_file(tmp_path, "node", node_login)), "node", "run", "--node-id", "n1"),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            with routing_client(cluster_name, servers, security=reader_login) as client:
                await_(lambda: client.table is not None and "n1" in client.table.nodes, tmp_path)
                client.wait_for(lambda table: table.slots[0].leader == "n1", timeout_ms=60_000)
                assert client.route("user-1").node_id == "n1"
            for words in (("nodes", "list"), ("leader", "show"), ("table", "refresh", "--wait", "30")):
                ran = subprocess.run(
                    [*cluster.command_line(operator_login), *words, "--format", "json"],
                    env=cluster.environment,
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=DEADLINE_S,
                )
                assert ran.returncode == 0, (words, ran.stderr)
                said += [ran.stdout, ran.stderr]
            said += process_titles()
        finally:
            node.terminate()
            node.wait(DEADLINE_S)
    assert json.loads(said[0])[0]["node"] == "n1"
    said += [(tmp_path / name).read_text("utf-8", "replace") for name in ("controller.log", "node.log")]
    assert [text[:300] for text in said for secret in SECRETS if secret in text] == []


def test_a_broker_that_nobody_vouches_for_is_not_believed(secured_kafka: SecuredKafka, tmp_path: Path) -> None:
    """No password goes to whoever answers, and the sentence says that it is the certificate."""
    other = Authority(tmp_path / "other")
    login = {**secured_kafka.tls_login("reader"), "ssl.ca.location": str(other.certificate)}
    reader = KafkaLogReader(ClusterConfig("any"), KafkaConfig(secured_kafka.tls_password_servers, login))
    with pytest.raises(LogUnavailableError, match=r"certificate verify failed|certificate could not be verified"):
        reader.start_offsets("routing-table")
    reader.close()


def salt(broker: SecuredKafka, user: str, password: str) -> None:
    """Let a user log in by a salted password."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4_096)
    changes: list[UserScramCredentialAlteration] = [UserScramCredentialUpsertion(user, info, password.encode())]
    for changed in admin.alter_user_scram_credentials(changes).values():
        changed.result(20)


def process_titles() -> list[str]:
    """The words of every process of this machine, as every user sees them."""
    titles = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            titles.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue  # it has ended meanwhile
    assert len(titles) > 1
    return titles


def await_(condition: Callable[[], bool], folder: Path) -> None:
    """Wait for it, or show what the parts say."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        logs = {path.name: path.read_text("utf-8", "replace")[-3_000:] for path in folder.glob("*.log")}
        assert time.monotonic() < deadline, logs
        time.sleep(0.1)
