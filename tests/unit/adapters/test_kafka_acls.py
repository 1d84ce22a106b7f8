"""Looking at access control entries where there are none."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation, ConfigResource

from controlplane.adapters import kafka_acls
from controlplane.adapters.kafka_acls import verify_acls
from controlplane.bootstrap.access_roles import access_roles
from controlplane.errors import ConfigurationError
from controlplane.kafka_rules.acls_file import Grant, role_named

GRANTS = [Grant(role_named(access_roles(), "reader"), "User:r1")]


class EmptyKafka:
    """A client of a Kafka without access control entries, whose broker says this of its authorizer."""

    principal = "User:ANONYMOUS"

    def __init__(self, authorizer: object) -> None:
        self.client = self
        self._authorizer = authorizer

    def describe_cluster(self, **_: object) -> Future[Any]:
        """Everything is allowed."""
        return _answer(SimpleNamespace(authorized_operations=[AclOperation.DESCRIBE]))

    def describe_acls(self, *_: object, **__: object) -> Future[Any]:
        """Also without an authorizer confluent_kafka gives an empty list."""
        return _answer([])

    def list_topics(self, **_: object) -> SimpleNamespace:
        """Two brokers."""
        return SimpleNamespace(brokers={2: None, 1: None})

    def describe_configs(self, resources: list[ConfigResource], **_: object) -> dict[ConfigResource, Future[Any]]:
        """What the first broker is set to."""
        assert [resource.name for resource in resources] == ["1"]
        return {resources[0]: _answer(self._authorizer)}


def _answer(value: object) -> Future[Any]:
    answer: Future[Any] = Future()
    if isinstance(value, Exception):
        answer.set_exception(value)
    else:
        answer.set_result(value)
    return answer


def _verify(authorizer: object, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(kafka_acls, "KafkaAdmin", lambda *_: EmptyKafka(authorizer))
    return len(verify_acls("k:1", "local", GRANTS, {}).missing)


@pytest.mark.parametrize("unset", ["", None])
def test_a_kafka_without_an_authorizer_lacks_no_entries(unset: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no use for any: that is what has to be said."""
    with pytest.raises(ConfigurationError, match="this Kafka has no authorizer"):
        _verify({"authorizer.class.name": SimpleNamespace(value=unset)}, monkeypatch)


@pytest.mark.parametrize(
    "authorizer",
    [
        {"authorizer.class.name": SimpleNamespace(value="org.apache.kafka.metadata.authorizer.StandardAuthorizer")},
        {},
        KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)),
    ],
)
def test_a_kafka_with_an_authorizer_lacks_every_entry(authorizer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may not look at the setting is denied that by an authorizer."""
    assert _verify(authorizer, monkeypatch) == len(GRANTS[0].role.rights)
