"""Grants and checks the rights of a cluster's principals, as defined in ``infra/kafka/acls.toml``."""

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
from controlplane.config import topic_name
from controlplane.errors import ConfigurationError, ControlPlaneError, LogUnavailableError
from controlplane.kafka_rules.acls_file import Grant, ResourceKind, Right

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
    """One access control entry: a principal may, or must not, perform an operation on a resource.

    Attributes:
        principal: as Kafka writes it.
        operation: Kafka's name of the operation, in lower case.
        kind: the kind of the resource, in words.
        name: the resource's name in Kafka, or the beginning of the names.
        host: the host from which; ``*`` stands for every host.
        prefixed: whether the entry applies to every resource whose name begins with ``name``.
        denies: whether the entry denies the operation.
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
    """The result of applying or verifying grants.

    Attributes:
        created: the entries that were missing and exist now.
        verified: the entries that existed before.
        missing: the entries that do not exist; empty after applying.
        advice: one sentence for each entry in Kafka that grants more than the roles need, or denies something.
    """

    created: tuple[AclEntry, ...]
    verified: tuple[AclEntry, ...]
    missing: tuple[AclEntry, ...]
    advice: tuple[str, ...]


def apply_acls(
    bootstrap_servers: str, cluster: str, grants: Sequence[Grant], security: Mapping[str, str]
) -> AclsReport:
    """Create the entries that are missing; existing ones are never changed or removed.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        cluster: the cluster's name, the prefix of its topics and transactional ids.
        grants: which principals have which access roles.
        security: further librdkafka settings for TLS and SASL.

    Raises:
        ConfigurationError: this user has no right to grant rights, or Kafka has no authorizer.
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
            message = f"Kafka accepted the rights of cluster {cluster}, but does not show all of them: try again"
            raise LogUnavailableError(message)
        time.sleep(CHANGE_VISIBLE_POLL_S)
        there = _there(admin)
    verified = tuple(entry for entry in wanted if entry not in missing)
    return AclsReport(tuple(missing), verified, (), tuple(_advice(cluster, grants, wanted, there)))


def verify_acls(
    bootstrap_servers: str, cluster: str, grants: Sequence[Grant], security: Mapping[str, str]
) -> AclsReport:
    """Check which entries exist; change nothing.

    Args:
        bootstrap_servers: ``host:port`` list, comma separated.
        cluster: the cluster's name, the prefix of its topics and transactional ids.
        grants: which principals have which access roles.
        security: further librdkafka settings for TLS and SASL.

    Raises:
        ConfigurationError: this user has no right to describe access control entries, or Kafka has no authorizer.
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
    """The access control entry that gives a principal a right, in the form of Kafka's client."""
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
    """The entries of all grants in their order, without duplicates: the roles of one principal may overlap."""
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
    """Check that this client may describe entries; otherwise confluent_kafka returns no entries and no error.

    Raises:
        ConfigurationError: this user has no right to describe access control entries.
    """
    asked = admin.client.describe_cluster(include_authorized_operations=True, request_timeout=REQUEST_TIMEOUT_S)
    try:
        allowed = asked.result(REQUEST_TIMEOUT_S).authorized_operations
    except (KafkaException, TimeoutError) as error:
        raise _failure(admin, error, "describe") from error
    if AclOperation.DESCRIBE not in (allowed or ()):
        raise _denial(admin, "describe")


def _require_authorizer(admin: KafkaAdmin) -> None:
    """Check that Kafka has an authorizer; without one, confluent_kafka returns no entries and no error.

    Raises:
        ConfigurationError: Kafka has none.
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
        f"this Kafka has no authorizer, so every client may do everything. Set {_AUTHORIZER} "
        "on every broker and controller (org.apache.kafka.metadata.authorizer.StandardAuthorizer)"
    )


def _denial(admin: KafkaAdmin, operation: str) -> ConfigurationError:
    return ConfigurationError(
        f"Kafka does not allow {admin.principal} to {operation} access control entries: "
        "log in as a super user of Kafka, or as a user who may describe and alter the Kafka cluster"
    )


def _advice(cluster: str, grants: Sequence[Grant], wanted: Collection[AclEntry], there: set[AclEntry]) -> Iterator[str]:
    """Sentences about the cluster's entries that exist beyond these grants: further rights, and denials."""
    principals = {grant.principal for grant in grants} | {_EVERYBODY}
    for entry in sorted(there.difference(wanted), key=astuple):
        about = _about(entry, topic_name(cluster, ""))
        if about is None or entry.principal not in principals:
            continue
        if entry.denies:
            yield f"{entry.principal} is denied to {entry.operation} {about}: a denial overrides every right"
        elif entry.principal == _EVERYBODY:
            yield f"every principal ({_EVERYBODY}) may {entry.operation} {about}"
        else:
            yield f"{entry.principal} may {entry.operation} {about}, which its roles do not need"


def _about(entry: AclEntry, prefix: str) -> str | None:
    """The resource of an entry, in words; None if it is not one of the cluster's."""
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
