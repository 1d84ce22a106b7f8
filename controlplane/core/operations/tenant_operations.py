"""Operations on tenants: register one or change its allowed clusters, and delete one."""

from collections.abc import Collection
from typing import Final

from controlplane.core.bundles.events import TenantDeleted, TenantSet
from controlplane.core.bundles.names import check_part, tenant_of
from controlplane.core.bundles.tenants import (
    Tenant,
    home_of,
    namespaces_not_allowed,
    namespaces_of,
    parse_clusters,
)
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.operations.answers import Answer, done, refused, some_of
from controlplane.core.operations.arguments import Argument
from controlplane.core.operations.intent_conflicts import no_goals
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import Arguments, OperationContext
from controlplane.core.operations.slot_numbers import counted
from controlplane.core.values.identifiers import ClusterName, NamespaceName

_TENANTS_LEVEL: Final = 2
_NAMELESS: Final = "this cluster, whose name the log holds from the next term on"


def set_tenant(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Register a tenant, or change the clusters that it allows; not while a namespace of it would be in another one."""
    image, here = draft.state.bundles, draft.state.cluster.name
    tenant = Tenant(arguments["tenant"], parse_clusters(arguments.get("clusters", "")))
    outside = list(namespaces_not_allowed(tenant, image.namespaces, here))
    if outside:
        clusters = {_shown(home_of(name, here)) for name in outside}
        return refused(
            f"tenant {tenant.name!r} has {counted(len(outside), 'namespace')} where it would not be allowed any more, "
            f"in {some_of(clusters)}: {some_of(outside)}"
        )
    said = f"tenant {tenant.name!r} allows {_allowed(tenant.allowed_clusters)}"
    if image.tenants.get(tenant.name) == tenant:
        return done(f"{said} already")
    draft.add(TenantSet(tenant))
    return done(said)


def delete_tenant(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Delete a tenant, so that it is not registered any more; not while it has namespaces."""
    name, image = arguments["tenant"], draft.state.bundles
    if name not in image.tenants:
        return done(f"tenant {name!r} is not registered")
    left = list(namespaces_of(name, image.namespaces))
    if left:
        return refused(f"tenant {name!r} still has {counted(len(left), 'namespace')}: {some_of(left)}")
    draft.add(TenantDeleted(name))
    return done(f"tenant {name!r} is deleted")


def tenant_refusal(state: State, namespace: NamespaceName) -> str | None:
    """Why the tenant of a new namespace does not allow it; None if it does, or is not registered, or there is none."""
    tenant = state.bundles.tenants.get(tenant_of(namespace) or "")
    if tenant is None or not any(namespaces_not_allowed(tenant, [namespace], state.cluster.name)):
        return None
    cluster = _shown(home_of(namespace, state.cluster.name))
    return (
        f"namespace {namespace!r} would be in {cluster}: "
        f"tenant {tenant.name!r} allows {_allowed(tenant.allowed_clusters)}"
    )


def _shown(cluster: ClusterName) -> str:
    return f"cluster {cluster!r}" if cluster else _NAMELESS


def _allowed(clusters: Collection[ClusterName]) -> str:
    return f"{'cluster' if len(clusters) == 1 else 'clusters'} {some_of(clusters)}" if clusters else "no cluster"


_TENANT: Final = Argument(
    name="tenant",
    meaning="its name, the first part of the names of its namespaces",
    required=True,
    check=lambda text: check_part("tenant", text),
    order=None,
)

TENANT_OPERATIONS: Final = (
    Operation(
        kind=IntentKind.SET_TENANT,
        summary="Register a tenant, or replace the clusters that it allows.",
        carry_out=set_tenant,
        arguments=(
            _TENANT,
            Argument(
                name="clusters",
                meaning="the clusters in which its namespaces may be, as in `eu,us`; none if empty or left out",
                required=False,
                check=parse_clusters,
                order=None,
            ),
        ),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=_TENANTS_LEVEL,
        command="tenants set TENANT [--clusters CLUSTERS]",
        supposition="",
    ),
    Operation(
        kind=IntentKind.DELETE_TENANT,
        summary="Delete a tenant that has no namespaces: it is not registered, and so not restricted, any more.",
        carry_out=delete_tenant,
        arguments=(_TENANT,),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=_TENANTS_LEVEL,
        command="tenants delete TENANT",
        supposition="",
    ),
)
