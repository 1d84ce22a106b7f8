"""Names of namespaces, tenants and clusters, and the ids of bundles.

A namespace is named ``tenant/namespace``, as in Pulsar, or in another form that a version or a policy allows. The id of
a bundle is its namespace, a slash and its hash range.
"""

import re
from collections.abc import Collection
from typing import Final

from controlplane.core.values.identifiers import ClusterName, NamespaceName, TenantName
from controlplane.errors import ConfigurationError

ANY_FORM: Final = (1, 2, 3)
"""Numbers of parts that our own policy allows.

One part is a namespace without a tenant, which Pulsar does not have. Two are Pulsar's ``tenant/namespace``. Three are
``tenant/cluster/namespace``: those of Pulsar 2 and earlier versions, which version 4 refuses.
"""
_FORMS: Final = {1: "namespace", 2: "tenant/namespace", 3: "tenant/cluster/namespace"}
SYSTEM_NAMESPACE: Final = "pulsar/system"
"""The namespace of the load managers' own topics."""
_HEALTH_CHECKS: Final = re.compile(r"(?:pulsar|sla-monitor)/[^:/]+:[0-9]+")
_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=:-]{0,126}")
_CHARACTERS: Final = "1 to 127 of A-Z, a-z, 0-9, '.', '_', '-', '=' and ':', beginning with a letter, a digit or '_'"


def check_namespace_name(name: str, part_counts: Collection[int] = ANY_FORM) -> None:
    """Check that a text can name a namespace.

    Args:
        name: the text.
        part_counts: the numbers of parts that the caller's version or policy allows.

    Raises:
        ConfigurationError: another number of parts, or a part that is empty, too long, or has a character that is not
            allowed. Pulsar's characters are, except that a part begins with a letter, a digit or an underscore.
    """
    parts = name.split("/")
    if len(parts) not in part_counts or not all(map(_PART.fullmatch, parts)):
        forms = " or ".join(_FORMS[count] for count in sorted(part_counts))
        raise ConfigurationError(f"namespace {name!r:.140}: take {forms}, each part {_CHARACTERS}")


def check_part(what: str, text: str) -> None:
    """Check that a text can be a part of a namespace's name; ``what`` says of what it is the name.

    Raises:
        ConfigurationError: it is empty, too long, or has a character that is not allowed.
    """
    if not _PART.fullmatch(text):
        raise ConfigurationError(f"{what} {text!r:.140}: take {_CHARACTERS}")


def tenant_of(namespace: NamespaceName) -> TenantName | None:
    """The tenant in the name of a namespace; None if the name has no tenant."""
    parts = namespace.split("/")
    return parts[0] if len(parts) > 1 else None


def cluster_of(namespace: NamespaceName) -> ClusterName | None:
    """The cluster in the name of a namespace; None if the name has no cluster."""
    parts = namespace.split("/")
    return parts[1] if len(parts) == max(ANY_FORM) else None


def namespace_of(bundle_id: str) -> str:
    """The namespace of a bundle: its id before the last slash."""
    return bundle_id.rpartition("/")[0]


def range_of(bundle_id: str) -> str:
    """The hash range of a bundle: its id after the last slash."""
    return bundle_id.rpartition("/")[2]


def serves_health_checks(namespace: str) -> bool:
    """Whether a namespace belongs to a node's own health checks: ``pulsar/host:port`` or ``sla-monitor/host:port``.

    Its bundles cannot leave their node. A host with a colon does not match, nor does a name of three parts: Pulsar 4
    treats their bundles like others. :data:`SYSTEM_NAMESPACE` is not one of them.
    """
    return _HEALTH_CHECKS.fullmatch(namespace) is not None
