"""The rights file, ``infra/kafka/acls.toml``: the operations that each access role may perform on a cluster's topics.

Pure functions from text to values. The file itself explains its format.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from controlplane.config import topic_name
from controlplane.errors import ConfigurationError
from controlplane.kafka_rules.promises import INTERNAL_TOPICS
from controlplane.kafka_rules.toml_document import (
    Table,
    names_in,
    parse_document,
    refuse_unknown,
    sentence_in,
    table_in,
    tables_in,
)

FORMAT = 1
"""The only known format of the file."""

_ROLE_KEYS = frozenset({"why", "rights"})


class ResourceKind(Enum):
    """The kind of a right's resource, by Kafka's names; the value is for messages."""

    TOPIC = "topic"
    TRANSACTIONAL_ID = "transactional id"


class Operation(Enum):
    """An operation of a right, as the file writes it; Kafka writes it in capitals."""

    CREATE = "create"
    DESCRIBE = "describe"
    DESCRIBE_CONFIGS = "describe_configs"
    READ = "read"
    WRITE = "write"


_KINDS: Mapping[str, ResourceKind] = {
    "topics": ResourceKind.TOPIC,
    "transactional_ids": ResourceKind.TRANSACTIONAL_ID,
}
_RIGHT_KEYS = frozenset({*_KINDS, "operations", "why"})
_OPERATIONS = {operation.value: operation for operation in Operation}


@dataclass(frozen=True, slots=True)
class Right:
    """One operation on one resource.

    Attributes:
        kind: the kind of the resource.
        name: its name without the cluster's prefix, which Kafka's own topics do not have.
        operation: the operation that is allowed.
        why: what does not work without the right.
    """

    kind: ResourceKind
    name: str
    operation: Operation
    why: str

    def full_name(self, cluster: str) -> str:
        """The name of the resource in Kafka."""
        return self.name if self.name in INTERNAL_TOPICS else topic_name(cluster, self.name)


@dataclass(frozen=True, slots=True)
class AccessRole:
    """A set of rights that a principal may have.

    Attributes:
        name: of the role.
        why: the parts that need the role.
        rights: in the file's order, without duplicates.
    """

    name: str
    why: str
    rights: tuple[Right, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """A role given to a principal.

    Attributes:
        role: the access role.
        principal: as Kafka writes it: ``User:ada``.
    """

    role: AccessRole
    principal: str


def parse_roles(text: str, source: str) -> tuple[AccessRole, ...]:
    """Read a rights file.

    Args:
        text: its content.
        source: its name, for error messages.

    Returns:
        The roles in the file's order.

    Raises:
        ConfigurationError: the text is not valid TOML, or contains something that the format does not define.
    """
    document = parse_document(text, source, FORMAT)
    roles = table_in(document, "roles", source)
    return tuple(_role(name, table_in(roles, name, f"{source}, roles"), f"{source}, role {name}") for name in roles)


def role_named(roles: Sequence[AccessRole], name: str) -> AccessRole:
    """The role of that name.

    Raises:
        ConfigurationError: there is none.
    """
    for role in roles:
        if role.name == name:
            return role
    raise ConfigurationError(f"there is no role {name!r}; the roles are {', '.join(role.name for role in roles)}")


def grants_of(roles: Sequence[AccessRole], assignments: Sequence[tuple[str, str]]) -> tuple[Grant, ...]:
    """The grants for pairs of a role's name and a principal, without duplicates.

    Args:
        roles: the known roles.
        assignments: pairs of the name of a role and a principal.

    Raises:
        ConfigurationError: there is no such role, or the principal is not a principal of Kafka.
    """
    grants = []
    for name, principal in assignments:
        role = role_named(roles, name)
        kind, colon, user = principal.partition(":")
        if not (kind and colon and user):
            raise ConfigurationError(f"role {name}: {principal!r} is not a principal of Kafka; write User:NAME")
        if user == "*":
            raise ConfigurationError(f"role {name}: {principal} is every user; name each principal that has the role")
        grants.append(Grant(role, principal))
    return tuple(dict.fromkeys(grants))


def _role(name: str, table: Table, where: str) -> AccessRole:
    refuse_unknown(table, _ROLE_KEYS, where)
    entries = tables_in(table, "rights", where)
    rights = [
        right for number, entry in enumerate(entries, start=1) for right in _rights(entry, f"{where}, right {number}")
    ]
    known = set()
    for right in rights:
        named = (right.kind, right.name, right.operation)
        if named in known:
            raise ConfigurationError(
                f"{where}: {right.operation.value} of {right.kind.value} {right.name} is listed twice"
            )
        known.add(named)
    return AccessRole(name, sentence_in(table, "why", where), tuple(rights))


def _rights(entry: Table, where: str) -> Iterator[Right]:
    refuse_unknown(entry, _RIGHT_KEYS, where)
    kinds = [key for key in _KINDS if key in entry]
    if len(kinds) != 1:
        raise ConfigurationError(f"{where}: write one of {', '.join(_KINDS)}")
    why = sentence_in(entry, "why", where)
    for name in names_in(entry, kinds[0], where):
        for text in names_in(entry, "operations", where):
            if text not in _OPERATIONS:
                raise ConfigurationError(f"{where}: operation {text!r} is unknown; known are {', '.join(_OPERATIONS)}")
            yield Right(_KINDS[kinds[0]], name, _OPERATIONS[text], why)
