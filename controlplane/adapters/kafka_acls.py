"""Granting and checking the rights of a cluster's principals, as ``infra/kafka/acls.toml`` wants them."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from controlplane.adapters.kafka_admin_client import (
    CHANGE_VISIBLE_DEADLINE_S,
    CHANGE_VISIBLE_POLL_S,
    REQUEST_TIMEOUT_S,
    KafkaAdmin,
)
from controlplane.adapters.kafka_errors import error_of, is_denied
from controlplane.codec.acls_file import Grant, ResourceKind, Right
from controlplane.config import topic_name
from controlplane.errors import ConfigurationError, ControlPlaneError, LogUnavailableError

_AUTHORIZER = "authorizer.class.name"
_EVERYTHING = "*"
_EVERYBODY = "User:*"
_RESOURCE_TYPES: Final[Mapping[ResourceKind, ResourceType]] = {
    ResourceKind.TOPIC: ResourceType.TOPIC,
    ResourceKind.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}
_KINDS: Final[Mapping[ResourceType, str]] = {
    **{theirs: kind.value for kind, theirs in _RESOURCE_TYPES.items()},
    ResourceType.BROKER: "Kafka cluster",
}


@dataclass(frozen=True, slots=True)
class AclEntry:
    """One access control entry: who may do what with which thing.

    Attributes:
        principal: as Kafka writes it.
        operation: Kafka's, in small letters.
        kind: what the thing is, in words.
        name: its name in Kafka, or how the names begin.
        host: from where; ``*`` is everywhere.
        prefixed: the entry is about everything whose name begins so.
        denies: the entry takes the operation away.
    """

    principal: str
    operation: str
    kind: str
    name: str
    host: str = _EVERYTHING
    prefixed: bool = False
    denies: bool = False


@dataclass(frozen=True, slots=True)
class AclsReport:
    """What was found and done.

    Attributes:
        created: the entries that were missing and are there now.
        verified: the entries that were there.
        missing: the entries that are not there; empty after applying.
        advice: one sentence for each entry in Kafka that gives more than the roles need, or takes something away.
    """

    created: tuple[AclEntry, ...]
    verified: tuple[AclEntry, ...]
    missing: tuple[AclEntry, ...]
    advice: tuple[str, ...]


def apply_acls(
    bootstrap_servers: str, cluster: str, grants: Sequence[Grant], security: Mapping[str, str]
) -> AclsReport:
    """Create the entries that are missing; existing ones are never changed or taken away.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        cluster: the cluster's name, the prefix of its topics and transactional ids.
        grants: which principals have which roles.
        security: further librdkafka settings for TLS and SASL.

    Raises:
        ConfigurationError: this user may not grant rights, or Kafka has no authorizer.
        LogUnavailableError: Kafka did not answer in time.
    """
    admin = KafkaAdmin(cluster, bootstrap_servers, security)
    wanted = _wanted(cluster, grants)
    there = _there(admin)
    missing = [entry for entry in wanted if entry not in there]
    _create(admin, [wanted[entry] for entry in missing])
    deadline = time.monotonic() + CHANGE_VISIBLE_DEADLINE_S
    while not there.issuperset(missing):
        if time.monotonic() > deadline:
            message = f"Kafka took the rights of cluster {cluster}, but does not show all of them: try again"
            raise LogUnavailableError(message)
        time.sleep(CHANGE_VISIBLE_POLL_S)
        there = _there(admin)
    verified = tuple(entry for entry in wanted if entry not in missing)
    return AclsReport(tuple(missing), verified, (), tuple(_advice(cluster, grants, wanted, there)))


def verify_acls(
    bootstrap_servers: str, cluster: str, grants: Sequence[Grant], security: Mapping[str, str]
) -> AclsReport:
    """Look which entries are there; changes nothing.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        cluster: the cluster's name, the prefix of its topics and transactional ids.
        grants: which principals have which roles.
        security: further librdkafka settings for TLS and SASL.

    Raises:
        ConfigurationError: this user may not look at rights, or Kafka has no authorizer.
        LogUnavailableError: Kafka did not answer in time.
    """
    admin = KafkaAdmin(cluster, bootstrap_servers, security)
    wanted = _wanted(cluster, grants)
    there = _there(admin)
    if not there:
        _require_authorizer(admin)
    return AclsReport(
        created=(),
        verified=tuple(entry for entry in wanted if entry in there),
        missing=tuple(entry for entry in wanted if entry not in there),
        advice=tuple(_advice(cluster, grants, wanted, there)),
    )


def binding_of(cluster: str, right: Right, principal: str) -> AclBinding:
    """The access control entry by which a principal has a right, as Kafka's client takes it."""
    return AclBinding(
        _RESOURCE_TYPES[right.kind],
        right.full_name(cluster),
        ResourcePatternType.LITERAL,
        principal,
        _EVERYTHING,
        AclOperation[right.operation.value.upper()],
        AclPermissionType.ALLOW,
    )


def _wanted(cluster: str, grants: Sequence[Grant]) -> dict[AclEntry, AclBinding]:
    """In the order of the grants, none twice: roles of one principal overlap."""
    bindings = [binding_of(cluster, right, grant.principal) for grant in grants for right in grant.role.rights]
    return {_entry(binding): binding for binding in bindings}


def _there(admin: KafkaAdmin) -> set[AclEntry]:
    _require_sight(admin)
    anything: Any = None
    everything = AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    try:
        asked = admin.client.describe_acls(everything, request_timeout=REQUEST_TIMEOUT_S)
        return {_entry(binding) for binding in asked.result(REQUEST_TIMEOUT_S)}
    except (KafkaException, TimeoutError) as error:
        raise _failure(admin, error, "describe") from error


def _require_sight(admin: KafkaAdmin) -> None:
    """To a client that may not look, confluent_kafka shows no entries at all, and no error.

    Raises:
        ConfigurationError: this user may not look at access control entries.
    """
    asked = admin.client.describe_cluster(include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S)
    try:
        allowed = asked.result(REQUEST_TIMEOUT_S).authorized_operations
    except (KafkaException, TimeoutError) as error:
        raise _failure(admin, error, "describe") from error
    if AclOperation.DESCRIBE not in (allowed or ()):
        raise _denial(admin, "describe")


def _require_authorizer(admin: KafkaAdmin) -> None:
    """Of a Kafka that looks at no access control entries, confluent_kafka shows none, and no error.

    Raises:
        ConfigurationError: this is one.
    """
    try:
        broker = min(admin.client.list_topics(timeout=REQUEST_TIMEOUT_S).brokers)
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        asked = admin.client.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S)
        setting = asked[resource].result(REQUEST_TIMEOUT_S).get(_AUTHORIZER)
    except (KafkaException, TimeoutError) as error:
        if isinstance(error, KafkaException) and is_denied(error_of(error)):
            return  # only an authorizer denies
        raise _failure(admin, error, "describe") from error
    if setting is not None and not setting.value:
        raise _no_authorizer()


def _create(admin: KafkaAdmin, missing: Sequence[AclBinding]) -> None:
    if not missing:
        return
    for answer in admin.client.create_acls(list(missing), request_timeout=REQUEST_TIMEOUT_S).values():
        try:
            answer.result(REQUEST_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            raise _failure(admin, error, "create") from error


def _failure(admin: KafkaAdmin, failed: KafkaException | TimeoutError, operation: str) -> ControlPlaneError:
    error = error_of(failed) if isinstance(failed, KafkaException) else None
    if error is not None and error.code() == KafkaError.SECURITY_DISABLED:
        return _no_authorizer()
    if error is not None and is_denied(error):
        return _denial(admin, operation)
    return admin.failure(failed, operation, "the access control entries")


def _no_authorizer() -> ConfigurationError:
    return ConfigurationError(
        f"this Kafka has no authorizer: it allows everything to everybody. Set {_AUTHORIZER} "
        "on every broker and controller (org.apache.kafka.metadata.authorizer.StandardAuthorizer)"
    )


def _denial(admin: KafkaAdmin, operation: str) -> ConfigurationError:
    return ConfigurationError(
        f"Kafka does not allow {admin.principal} to {operation} access control entries: "
        "be a super user of Kafka, or one that may describe and alter the Kafka cluster"
    )


def _advice(cluster: str, grants: Sequence[Grant], wanted: Collection[AclEntry], there: set[AclEntry]) -> Iterator[str]:
    """What of the cluster's things somebody has beyond these grants, or is denied in spite of them."""
    principals = {grant.principal for grant in grants} | {_EVERYBODY}
    for entry in sorted(there.difference(wanted), key=astuple):
        about = _about(entry, topic_name(cluster, ""))
        if about is None or entry.principal not in principals:
            continue
        if entry.denies:
            yield f"{entry.principal} is denied to {entry.operation} {about}: a denial counts more than every right"
        elif entry.principal == _EVERYBODY:
            yield f"everybody ({_EVERYBODY}) may {entry.operation} {about}"
        else:
            yield f"{entry.principal} may {entry.operation} {about}, which its roles do not need"


def _about(entry: AclEntry, prefix: str) -> str | None:
    """What an entry is about, in words; None if that is nothing of the cluster's."""
    if entry.kind not in _KINDS.values():
        return None
    if entry.kind == _KINDS[ResourceType.BROKER]:
        return f"the {entry.kind}"
    if entry.prefixed:
        touches = entry.name.startswith(prefix) or prefix.startswith(entry.name)
        return f"every {entry.kind} that begins with {entry.name!r}" if touches else None
    if entry.name == _EVERYTHING:
        return f"every {entry.kind}"
    return f"{entry.kind} {entry.name}" if entry.name.startswith(prefix) else None


def _entry(binding: AclBinding) -> AclEntry:
    kind = ResourceType(binding.restype)
    return AclEntry(
        principal=binding.principal,
        operation=AclOperation(binding.operation).name.lower(),
        kind=_KINDS.get(kind, kind.name.lower()),
        name=binding.name,
        host=binding.host,
        prefixed=binding.resource_pattern_type == ResourcePatternType.PREFIXED,
        denies=binding.permission_type == AclPermissionType.DENY,
    )
