"""The registered tenants as rows."""

from collections import Counter

from controlplane.core.bundles.names import tenant_of
from controlplane.core.log.state import State
from controlplane.inspection.records import Record

TENANT_FIELDS = ("tenant", "allowed_clusters", "namespaces")


def tenant_rows(state: State) -> list[Record]:
    """A row for each registered tenant, by name; ``namespaces`` is their number."""
    counts = Counter(map(tenant_of, state.bundles.namespaces))
    return [
        {"tenant": name, "allowed_clusters": list(tenant.allowed_clusters), "namespaces": counts[name]}
        for name, tenant in sorted(state.bundles.tenants.items())
    ]
