"""Each access role does its whole work with its rights, none of them is too much, and nobody may do another's work."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.adapters.kafka_acls import apply_acls, binding_of
from controlplane.adapters.kafka_admin import apply_topics
from controlplane.adapters.kafka_log import KafkaEventWriter, KafkaLogReader, KafkaTransactionalWriter
from controlplane.bootstrap.access_roles import access_roles
from controlplane.bootstrap.topics import topic_specs
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.errors import ConfigurationError
from controlplane.kafka_rules.acls_file import AccessRole, Grant, Operation, Right
from controlplane.kafka_rules.promises import INTERNAL_TOPICS
from controlplane.ports import Delivery, OutgoingRecord
from tests.fixtures import NewClusterName
from tests.helpers.roles_at_work import (
    Listener,
    RefusedError,
    SecuredCluster,
    controller_works,
    node_works,
    operator_works,
    reader_works,
)
from tests.helpers.secured_kafka import SUPER_USER, SecuredKafka

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROLES = {role.name: role for role in access_roles()}
REFUSED_WITHIN_S = 20.0
DENIED = (ConfigurationError, RefusedError)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where outputs and login files go."""
    return tmp_path_factory.mktemp("roles")


class Workplace:
    """A cluster for one role, with the role's rights, and how its work is done."""

    def __init__(self, kafka: SecuredKafka, cluster: SecuredCluster, role: AccessRole) -> None:
        """Grant the role to the user of its name."""
        self.kafka = kafka
        self.cluster = cluster
        self.role = role
        self.security = kafka.login(role.name)
        self.login = cluster.folder / f"{role.name}.properties"
        self.login.write_text("".join(f"{key}={value}\n" for key, value in self.security.items()), encoding="utf-8")
        self.grant()

    def grant(self) -> None:
        """Give the role what it needs."""
        apply_acls(
            self.kafka.password_servers,
            self.cluster.name,
            [Grant(self.role, f"User:{self.role.name}")],
            self.cluster.above,
        )

    def take(self, right: Right) -> None:
        """Take one right away."""
        self.kafka.take(binding_of(self.cluster.name, right, f"User:{self.role.name}"))

    def work(self) -> None:
        """Do everything that the role is there for."""
        lines: list[str] = []
        works: dict[str, Callable[[], None]] = {
            "controller": lambda: controller_works(self.cluster, self.login),
            "node": lambda: node_works(self.cluster, self.security, lines),
            "reader": lambda: reader_works(self.cluster, self.security),
            "operator": lambda: operator_works(self.cluster, self.login, self.security),
            "administrator": self._administer,
        }
        root, listener = logging.getLogger(), Listener(lines)
        root.addHandler(listener)
        try:
            works[self.role.name]()
        finally:
            root.removeHandler(listener)

    def _administer(self) -> None:
        apply_topics(self.kafka.password_servers, self.cluster.name, topic_specs(), self.security, least_copies=1)


MakeWorkplace = Callable[[str], Workplace]


@pytest.fixture(scope="module")
def workplace_of(
    secured_kafka: SecuredKafka, valkey_server: EmbeddedValkey, new_cluster_name: NewClusterName, folder: Path
) -> MakeWorkplace:
    """A role's workplace, the same one for all tests; the administrator has a new cluster each time."""
    made: dict[str, Workplace] = {}
    above = secured_kafka.login(SUPER_USER)

    def make(name: str) -> Workplace:
        if name in made and name != "administrator":
            return made[name]
        cluster_folder = folder / f"{name}-{len(made)}"
        cluster_folder.mkdir()
        number = len(made)
        made[name if name != "administrator" else f"administrator-{number}"] = place = Workplace(
            secured_kafka,
            SecuredCluster(
                new_cluster_name(name),
                secured_kafka.password_servers,
                above,
                valkey_server.redis_url,
                cluster_folder,
            ),
            ROLES[name],
        )
        if name != "administrator":
            place.cluster.create_topics()
        if name == "reader":
            place.cluster.feed.node("n1", incarnation=1).slot(0, "n1").slot(1, "n1").slot(2, "n1").slot(
                3, "n1"
            ).commit()
        if name == "operator":
            place.cluster.found_log()
            place.cluster.feed.node("n1", incarnation=1).slot(0, "n1").commit()
        return place

    return make


WORKING = [name for name in ROLES if name != "pipeline"]
"""The pipeline's work is tested beside the other tests of Spark."""


@pytest.mark.parametrize("name", WORKING)
def test_a_role_does_its_whole_work_with_its_rights(workplace_of: MakeWorkplace, name: str) -> None:
    """Real parts under a login that may do what the file says, and nothing else."""
    workplace_of(name).work()


def what_is_refused(place: Workplace) -> str:
    """What a role is told that lacks a right. A broker learns of it a moment after the right was taken."""
    deadline_s = time.monotonic() + REFUSED_WITHIN_S
    while True:
        try:
            place.work()
        except DENIED as refused:
            return str(refused)
        assert time.monotonic() < deadline_s, f"nothing was refused within {REFUSED_WITHIN_S} s"


def _rights(names: list[str]) -> list[tuple[str, Right]]:
    """Those without which something is refused; test_topics_of_kafkas_own.py is about the others."""
    return [(name, right) for name in names for right in ROLES[name].rights if right.name not in INTERNAL_TOPICS]


def _id(value: object) -> str:
    return f"{value.operation.value}-{value.name}" if isinstance(value, Right) else str(value)


@pytest.mark.parametrize(("name", "right"), _rights([name for name in WORKING if name != "administrator"]), ids=_id)
def test_without_any_one_right_some_work_is_refused(workplace_of: MakeWorkplace, name: str, right: Right) -> None:
    """No right is there for nothing; and who lacks it, lacks what, and what to run is one sentence."""
    place = workplace_of(name)
    place.take(right)
    try:
        refused = what_is_refused(place)
    finally:
        place.grant()
    sentence = next(line for line in refused.splitlines() if "does not allow" in line)
    assert f"Kafka does not allow User:{name} to " in sentence
    assert right.full_name(place.cluster.name) in sentence
    assert f"'controlplane acls apply --principal ROLE=User:{name}'" in sentence


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS])
@pytest.mark.parametrize("topic", ["heartbeats", "decisions"])
def test_an_administrator_needs_each_right(workplace_of: MakeWorkplace, topic: str, operation: Operation) -> None:
    """The same for whoever creates topics, each time on a cluster that has none; topics differ by nothing here."""
    place = workplace_of("administrator")
    (right,) = (each for each in place.role.rights if (each.name, each.operation) == (topic, operation))
    place.take(right)
    with pytest.raises(ConfigurationError, match=rf"does not allow User:administrator to \w+ topic \S+\.{topic} "):
        place.work()


FOREIGN = [
    ("node", "decisions"),
    ("node", "routing-table"),
    ("node", "intents"),
    ("node", "dead-letters"),
    ("reader", "routing-table"),
    ("reader", "heartbeats"),
    ("operator", "decisions"),
    ("operator", "membership"),
    ("pipeline", "decisions"),
    ("pipeline", "load-reports"),
    ("controller", "intents"),
    ("controller", "membership"),
    ("controller", "candidates"),
]


@pytest.fixture(scope="module")
def shared(secured_kafka: SecuredKafka, new_cluster_name: NewClusterName, folder: Path) -> SecuredCluster:
    """One cluster in which every user has the role of its name."""
    above = secured_kafka.login(SUPER_USER)
    cluster = SecuredCluster(new_cluster_name("shared-roles"), secured_kafka.password_servers, above, "", folder)
    cluster.create_topics()
    grants = [Grant(role, f"User:{role.name}") for role in ROLES.values()]
    apply_acls(cluster.servers, cluster.name, grants, above)
    return cluster


@pytest.mark.parametrize(("user", "topic"), FOREIGN)
def test_nobody_writes_what_is_not_its_own(
    secured_kafka: SecuredKafka, shared: SecuredCluster, user: str, topic: str
) -> None:
    """A node cannot decide, a reader cannot write at all, a controller cannot ask in an operator's place."""
    kafka = KafkaConfig(shared.servers, secured_kafka.login(user))
    writer = KafkaEventWriter(ClusterConfig(shared.name), kafka, 20_000)
    deliveries: list[Delivery] = []
    writer.send(OutgoingRecord(topic, b"key", b"value"), deliveries.append)
    writer.flush(20_000)
    writer.close()
    (delivery,) = deliveries
    assert delivery.denied
    assert f"Kafka does not allow User:{user} to write topic {shared.name}.{topic} " in str(delivery.error)


@pytest.mark.parametrize("user", ["node", "reader", "operator", "pipeline", "administrator", "stranger"])
def test_only_controllers_may_use_the_transactional_id(
    secured_kafka: SecuredKafka, shared: SecuredCluster, user: str
) -> None:
    """Whoever could initialise it would fence the leader."""
    kafka = KafkaConfig(shared.servers, secured_kafka.login(user))
    writer = KafkaTransactionalWriter(ClusterConfig(shared.name), kafka)
    with pytest.raises(
        ConfigurationError, match=f"does not allow User:{user} to use transactional id {shared.name}.le"
    ):
        writer.open()


@pytest.mark.parametrize(
    ("user", "topic"), [("node", "decisions"), ("reader", "decisions"), ("stranger", "routing-table")]
)
def test_nobody_reads_what_is_not_its_own(
    secured_kafka: SecuredKafka, shared: SecuredCluster, user: str, topic: str
) -> None:
    """The log of decisions is for whoever decides or operates."""
    reader = KafkaLogReader(ClusterConfig(shared.name), KafkaConfig(shared.servers, secured_kafka.login(user)))
    with pytest.raises(ConfigurationError, match=f"does not allow User:{user} to read topic {shared.name}.{topic} "):
        reader.start_offsets(topic)
    reader.close()


def test_a_wrong_password_is_said_to_be_one(secured_kafka: SecuredKafka, shared: SecuredCluster) -> None:
    """And not that Kafka does not answer: nobody should wait for that to pass."""
    login = {**secured_kafka.login("reader"), "sasl.password": "guessed"}
    reader = KafkaLogReader(ClusterConfig(shared.name), KafkaConfig(shared.servers, login))
    with pytest.raises(ConfigurationError, match="Kafka refuses the login of User:reader") as refused:
        reader.start_offsets("routing-table")
    assert "guessed" not in str(refused.value)
    reader.close()
