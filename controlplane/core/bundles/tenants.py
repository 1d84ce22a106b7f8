"""Tenants: owners of namespaces, each with the clusters in which its namespaces may be (Pulsar's TenantInfo)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from controlplane.core.bundles.names import check_part, cluster_of, tenant_of
from controlplane.core.values.identifiers import ClusterName, NamespaceName, TenantName


@dataclass(frozen=True, slots=True)
class Tenant:
    """A registered tenant. A tenant that is not registered is not restricted.

    Attributes:
        name: the first part of the names of its namespaces.
        allowed_clusters: the clusters in which its namespaces may be, sorted, each once. Empty: in none.
    """

    name: TenantName
    allowed_clusters: tuple[ClusterName, ...]


def parse_clusters(text: str) -> tuple[ClusterName, ...]:
    """The clusters in a text as ``eu,us``, sorted, each once; an empty text has none.

    Raises:
        ConfigurationError: one of them cannot be the name of a cluster.
    """
    names = text.split(",") if text else []
    for name in names:
        check_part("clusters: cluster", name)
    return tuple(sorted(set(names)))


def home_of(namespace: NamespaceName, this_cluster: ClusterName) -> ClusterName:
    """The cluster of a namespace: the one in its name, otherwise the cluster that decides."""
    return cluster_of(namespace) or this_cluster


def namespaces_of(tenant: TenantName, namespaces: Iterable[NamespaceName]) -> Iterator[NamespaceName]:
    """Those of the namespaces that belong to a tenant, in their order."""
    return (name for name in namespaces if tenant_of(name) == tenant)


def namespaces_not_allowed(
    tenant: Tenant, namespaces: Iterable[NamespaceName], this_cluster: ClusterName
) -> Iterator[NamespaceName]:
    """Those of the namespaces that belong to a tenant and are in a cluster that it does not allow, in their order.

    Pulsar checks the clusters to which a namespace is replicated. Without replication these are the cluster in the
    name, or the cluster itself.
    """
    of_tenant = namespaces_of(tenant.name, namespaces)
    return (name for name in of_tenant if home_of(name, this_cluster) not in tenant.allowed_clusters)
