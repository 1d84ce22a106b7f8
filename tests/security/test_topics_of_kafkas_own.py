"""A promise is read from topics of Kafka's own: a part that may not look at them says so once, and goes on."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.adapters.kafka_acls import apply_acls, binding_of
from controlplane.adapters.kafka_admin import verify_topics
from controlplane.adapters.kafka_admin_client import KafkaAdmin
from controlplane.adapters.kafka_topic_inspector import KafkaTopicInspector
from controlplane.adapters.system_threads import SystemThreads
from controlplane.bootstrap.access_roles import access_roles
from controlplane.bootstrap.topics import topic_specs
from controlplane.kafka_rules.acls_file import Grant, Right
from controlplane.kafka_rules.promises import INTERNAL_TOPICS, DescribedKafka
from controlplane.service import promise_watch
from controlplane.service.metrics import ControllerMetrics
from controlplane.service.promise_watch import PromiseWatch
from tests.fixtures import NewClusterName
from tests.helpers.polling import poll_until
from tests.helpers.roles_at_work import SecuredCluster
from tests.helpers.secured_kafka import SUPER_USER, SecuredKafka

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GRANTS = [Grant(role, f"User:{role.name}") for role in access_roles() if role.name in {"controller", "administrator"}]
RIGHTS = [(grant, right) for grant in GRANTS for right in grant.role.rights if right.name in INTERNAL_TOPICS]
LOOKS = 4


class CountedInspector:
    """Counts how often Kafka was asked."""

    def __init__(self, inspector: KafkaTopicInspector) -> None:
        """Ask through this one."""
        self._inspector = inspector
        self.looks = 0

    def describe(self, topics: Sequence[str]) -> DescribedKafka:
        """See :meth:`controlplane.ports.TopicInspector.describe`."""
        described = self._inspector.describe(topics)
        self.looks += 1
        return described


@pytest.fixture(scope="module")
def cluster(
    secured_kafka: SecuredKafka, new_cluster_name: NewClusterName, tmp_path_factory: pytest.TempPathFactory
) -> SecuredCluster:
    """A cluster on a Kafka that has both of its own topics: they exist since their first use."""
    above = secured_kafka.login(SUPER_USER)
    folder = tmp_path_factory.mktemp("own-topics")
    made = SecuredCluster(new_cluster_name("own-topics"), secured_kafka.password_servers, above, "", folder)
    made.create_topics()
    made.found_log()
    admin = KafkaAdmin(made.name, secured_kafka.bootstrap_servers, {})
    group = Consumer({"bootstrap.servers": secured_kafka.bootstrap_servers, "group.id": "of-others"})

    def have_both() -> bool:
        with suppress(KafkaException):  # the answer may be that the group has no coordinator yet
            group.committed([TopicPartition(f"{made.name}.decisions", 0)], timeout=5)
        return set(INTERNAL_TOPICS) <= KafkaTopicInspector(admin).describe(INTERNAL_TOPICS).topics.keys()

    poll_until(have_both, 60)
    group.close()
    return made


@pytest.fixture
def granted(cluster: SecuredCluster) -> Iterator[None]:
    """Both roles have all of their rights, before and after the test."""
    apply_acls(cluster.servers, cluster.name, GRANTS, cluster.above)
    yield
    apply_acls(cluster.servers, cluster.name, GRANTS, cluster.above)


def unchecked(cluster: SecuredCluster, kafka: SecuredKafka, user: str) -> list[str]:
    """What `topics verify`, and a controller before it starts, could not check as this user."""
    report = verify_topics(cluster.servers, cluster.name, topic_specs(), kafka.login(user))
    return [sentence for sentence in report.advice if "could not be checked" in sentence]


def warnings_of_a_watch(cluster: SecuredCluster, kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a running controller warns that it could not check, in several looks; it goes on."""
    monkeypatch.setattr(promise_watch, "LOOK_EVERY_MS", 20)
    admin = KafkaAdmin(cluster.name, cluster.servers, kafka.login("controller"))
    inspector = CountedInspector(KafkaTopicInspector(admin))
    registry = CollectorRegistry()
    metrics = ControllerMetrics(registry)
    watch = PromiseWatch(lambda: inspector, cluster.name, topic_specs(), SystemThreads(), metrics)
    with capture_logs() as lines:
        watch.start()
        poll_until(lambda: inspector.looks >= LOOKS, 60)
        watch.stop()
    watch.require_kept()
    assert registry.get_sample_value("controlplane_topic_settings_known") == 1
    assert {line["log_level"] for line in lines} <= {"warning"}
    return [line["difference"] for line in lines if "could not be checked" in line["difference"]]


@pytest.mark.usefixtures("granted")
def test_with_their_rights_controller_and_administrator_check_them(
    cluster: SecuredCluster, secured_kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both topics exist and are shown, so no sentence says that one could not be looked at."""
    for user in ("controller", "administrator"):
        assert unchecked(cluster, secured_kafka, user) == []
    assert warnings_of_a_watch(cluster, secured_kafka, monkeypatch) == []


@pytest.mark.usefixtures("granted")
@pytest.mark.parametrize(
    ("grant", "right"),
    RIGHTS,
    ids=[f"{grant.role.name}-{right.operation.value}-{right.name}" for grant, right in RIGHTS],
)
def test_without_a_right_it_is_said_once_what_was_not_checked(
    cluster: SecuredCluster, secured_kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch, grant: Grant, right: Right
) -> None:
    """Nothing is proven, so nobody stops; and who lacks it, lacks what, and what to run is one sentence."""
    user = grant.role.name
    secured_kafka.take(binding_of(cluster.name, right, grant.principal))
    poll_until(lambda: unchecked(cluster, secured_kafka, user), 20)
    found = [unchecked(cluster, secured_kafka, user)]
    if user == "controller":
        found.append(warnings_of_a_watch(cluster, secured_kafka, monkeypatch))
    for sentences in found:
        (sentence,) = sentences
        refused = f"Kafka does not allow User:{user} to {right.operation.value} topic {right.name} ("
        assert sentence.startswith(f"topic {right.name} could not be checked: {refused}")
        assert f"'controlplane acls apply --principal ROLE=User:{user}'" in sentence
