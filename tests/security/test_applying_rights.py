"""``controlplane acls`` against a broker with its authorizer on."""

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from controlplane.bootstrap.access_roles import access_roles
from controlplane.cli.root import run
from controlplane.embedded.kafka import EmbeddedKafka
from tests.helpers.secured_kafka import SUPER_USER, SecuredKafka

PRINCIPALS = "# who has which role\n\nnode = User:n1\nreader=User:r1\n"
RIGHTS = sum(len(role.rights) for role in access_roles() if role.name in {"node", "reader"})


class Console:
    """Runs command lines under a login."""

    def __init__(self, broker: SecuredKafka, cluster: str, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        """Write the login of each user to a file."""
        self._broker = broker
        self._cluster = cluster
        self._folder = folder
        self._capture = capture
        self.principals = folder / "principals"
        self.principals.write_text(PRINCIPALS, encoding="utf-8")

    def run(self, user: str, *words: str) -> tuple[int, str, str]:
        """Exit status, output, and what was said beside it."""
        login = self._folder / f"{user}.properties"
        settings = self._broker.tls_login(user)
        login.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        self._capture.readouterr()
        place = ("--cluster", self._cluster, "--bootstrap-servers", self._broker.tls_password_servers)
        status = run([*place, "--security", str(login), *words])
        said = self._capture.readouterr()
        return int(status), said.out, said.err


@pytest.fixture
def console(
    secured_kafka: SecuredKafka, cluster_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Console:
    """On a cluster of this test's own."""
    return Console(secured_kafka, cluster_name, tmp_path, capsys)


def test_missing_entries_are_created_and_the_others_verified(console: Console) -> None:
    """Like topics: what is there is left alone, what is missing is named or made, and twice is as good as once."""
    principals = ("--principal", str(console.principals))
    status, out, _ = console.run(SUPER_USER, "acls", "verify", *principals)
    assert (status, outcomes(out)) == (1, ["missing"] * RIGHTS)
    status, out, _ = console.run(SUPER_USER, "acls", "apply", *principals)
    assert (status, outcomes(out)) == (0, ["created"] * RIGHTS)
    status, out, err = console.run(SUPER_USER, "acls", "apply", *principals, "--principal", "reader=User:r2")
    assert (status, outcomes(out), err) == (0, ["created"] + ["there"] * RIGHTS, "")
    status, out, _ = console.run(SUPER_USER, "acls", "verify", *principals, "--format", "json")
    report = json.loads(out)
    assert (status, report["created"], report["missing"], report["advice"]) == (0, [], [], [])
    assert {entry["principal"] for entry in report["verified"]} == {"User:n1", "User:r1"}


def outcomes(out: str) -> list[str]:
    """The last word of each row of a table."""
    return [line.split()[-1] for line in out.splitlines()[1:]]


def test_what_is_there_beyond_the_roles_is_said(
    console: Console, secured_kafka: SecuredKafka, cluster_name: str
) -> None:
    """Nothing is taken away: somebody granted it, and he has to know. What is about other clusters is his own."""
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    allow, deny = AclPermissionType.ALLOW, AclPermissionType.DENY
    topic, read, write = ResourceType.TOPIC, AclOperation.READ, AclOperation.WRITE
    admin = AdminClient({"bootstrap.servers": secured_kafka.bootstrap_servers})
    entries = [
        AclBinding(topic, f"{cluster_name}.decisions", literal, "User:n1", "*", write, allow),
        AclBinding(topic, f"{cluster_name}.", prefixed, "User:n1", "*", read, allow),
        AclBinding(topic, f"{cluster_name}.heartbeats", literal, "User:n1", "10.0.0.1", write, deny),
        AclBinding(topic, f"{cluster_name}.intents", literal, "User:*", "*", write, allow),
        AclBinding(topic, "elsewhere.decisions", literal, "User:n1", "*", write, allow),
        AclBinding(topic, f"{cluster_name}.intents", literal, "User:ada", "*", write, allow),
    ]
    for created in admin.create_acls(entries).values():
        created.result(20)
    try:
        status, _, err = console.run(SUPER_USER, "acls", "apply", "--principal", str(console.principals))
    finally:
        for entry in entries:
            secured_kafka.take(entry)
    assert status == 0
    assert sorted(err.splitlines()) == [
        f"advice: User:n1 is denied to write topic {cluster_name}.heartbeats: a denial overrides every right",
        f"advice: User:n1 may read every topic that begins with '{cluster_name}.', which its roles do not need",
        f"advice: User:n1 may write topic {cluster_name}.decisions, which its roles do not need",
        f"advice: every principal (User:*) may write topic {cluster_name}.intents",
    ]


def test_who_is_no_super_user_is_told_so(console: Console) -> None:
    """Also where Kafka's client would only show no entries at all."""
    for words in ("apply", "verify"):
        status, out, err = console.run("node", "acls", words, "--principal", "node=User:n1")
        assert (status, out) == (2, "")
        assert "Kafka does not allow User:node to describe access control entries: log in as a super user" in err


def test_a_kafka_without_an_authorizer_is_said_to_have_none(
    kafka_broker: EmbeddedKafka, cluster_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Entries would be believed in, and nobody would look at them."""
    place = ("--cluster", cluster_name, "--bootstrap-servers", kafka_broker.bootstrap_servers)
    for words in ("apply", "verify"):
        assert run([*place, "acls", words, "--principal", "node=User:n1"]) == 2
        assert "this Kafka has no authorizer, so every client may do everything" in capsys.readouterr().err


def test_roles_are_shown_without_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    """With the cluster's names, and why."""
    assert run(["--cluster", "demo", "acls", "show", "--role", "reader"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:4] == ["reader", "read", "topic", "demo.routing-table"]
    assert run(["--cluster", "demo", "acls", "show", "--role", "king"]) == 2
    assert "there is no role 'king'; the roles are controller, node" in capsys.readouterr().err


def test_who_has_no_role_is_asked_for_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mistakes in a file are named by their line."""
    wrong = tmp_path / "principals"
    wrong.write_text("node=User:n1\nreader\n", encoding="utf-8")
    assert run(["acls", "apply", "--principal", str(wrong)]) == 2
    assert "line 2: no '=' in it; write ROLE=PRINCIPAL" in capsys.readouterr().err
    assert run(["acls", "apply", "--principal", "nowhere"]) == 2
    assert "'nowhere' is neither ROLE=PRINCIPAL nor a file of such lines" in capsys.readouterr().err
