"""Operations on namespaces: create one, and delete one with its bundles."""

from typing import Final

from controlplane.core.bundles.bundle import PULSAR_BOUNDS_LEVEL, Namespace, bundles_at_level_1, equal_bundles
from controlplane.core.bundles.events import BundleOrdersEnded, BundleOrdersGiven, NamespaceCreated, NamespaceEnding
from controlplane.core.bundles.names import check_namespace_name
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind, EndedOrder, OrderOutcome
from controlplane.core.bundles.ownership_channel.live_rows import created
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL, MAX_BUNDLES_PER_NAMESPACE
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.draft import Draft
from controlplane.core.operations.answers import Answer, done, refused
from controlplane.core.operations.arguments import Argument
from controlplane.core.operations.bundle_texts import bundles_of, require_namespace
from controlplane.core.operations.intent_conflicts import no_goals
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import Arguments, OperationContext
from controlplane.core.operations.slot_numbers import counted
from controlplane.core.operations.tenant_operations import tenant_refusal
from controlplane.core.values.events import FIRST_LEVEL
from controlplane.errors import ConfigurationError


def check_bundle_count(text: str) -> None:
    """Check that the text is a number of bundles with which a namespace can be created, or empty.

    Raises:
        ConfigurationError: it is not.
    """
    if text and not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= MAX_BUNDLES_PER_NAMESPACE):
        raise ConfigurationError(f"bundles is {text!r:.80}, expected a number from 1 to {MAX_BUNDLES_PER_NAMESPACE}")


def create_namespace(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Create a namespace, with its hash space divided evenly into as many bundles as asked for, or as the policy says.

    It is refused where its tenant is registered and does not allow the cluster.
    """
    name = arguments["namespace"]
    existing = draft.state.bundles.namespaces.get(name)
    if existing is not None:
        return refused(f"namespace {name!r} {'is being deleted' if existing.is_ending else 'exists already'}")
    problem = tenant_refusal(draft.state, name)
    if problem is not None:
        return refused(problem)
    count = int(arguments.get("bundles") or draft.state.cluster.policy.bundles_per_namespace)
    divide = equal_bundles if draft.state.cluster.feature_level >= PULSAR_BOUNDS_LEVEL else bundles_at_level_1
    bundles = divide(name, count)
    if draft.state.cluster.feature_level >= HANDOFFS_FROM_LEVEL:
        bundles = tuple(created(each, draft.epoch) for each in bundles)
    draft.add(NamespaceCreated(Namespace(name, len(bundles)), bundles))
    return done(f"namespace {name!r} with {counted(len(bundles), 'bundle')}")


def delete_namespace(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Order all bundles of a namespace to end; the namespace ends with the last of them.

    Orders of its bundles that stand fail: an owner that is dividing or releasing one finishes that step first.
    """
    name, image = arguments["namespace"], draft.state.bundles
    try:
        require_namespace(image, name)
    except ConfigurationError as error:
        return refused(str(error))
    if image.namespaces[name].is_ending:
        return done(f"namespace {name!r} is being deleted already")
    bundle_ids = [bundle.bundle_id for bundle in bundles_of(image, name)]
    standing = [bundle_id for bundle_id in bundle_ids if bundle_id in image.orders]
    if standing:
        failed = (EndedOrder(each, OrderOutcome.FAILED, "its namespace is being deleted") for each in standing)
        draft.add(BundleOrdersEnded(tuple(failed)))
    draft.add(NamespaceEnding(name))
    draft.add(BundleOrdersGiven(tuple(BundleOrder(each, BundleOrderKind.END) for each in bundle_ids)))
    replaced = f"; {counted(len(standing), 'order')} of them ended" if standing else ""
    return done(f"namespace {name!r} is being deleted: {counted(len(bundle_ids), 'bundle')} to be released{replaced}")


_NAMESPACE: Final = Argument(
    name="namespace",
    meaning=(
        "its name: `tenant/namespace`, `tenant/cluster/namespace` or `namespace`, each part 1 to 127 of "
        "A-Z, a-z, 0-9, `.`, `_`, `-`, `=` and `:`"
    ),
    required=True,
    check=check_namespace_name,
    order=None,
)

NAMESPACE_OPERATIONS: Final = (
    Operation(
        kind=IntentKind.CREATE_NAMESPACE,
        summary="Create a namespace and its bundles.",
        carry_out=create_namespace,
        arguments=(
            _NAMESPACE,
            Argument(
                name="bundles",
                meaning=(
                    f"the number of its bundles, 1 to {MAX_BUNDLES_PER_NAMESPACE}; the policy's "
                    "`bundles_per_namespace` if empty or left out"
                ),
                required=False,
                check=check_bundle_count,
                order=None,
            ),
        ),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="namespaces create NAMESPACE [--bundles BUNDLES]",
        supposition="",
    ),
    Operation(
        kind=IntentKind.DELETE_NAMESPACE,
        summary=(
            "Delete a namespace: its bundles take no other orders and no new owners, their owners release them, and "
            "the namespace ends with the last one."
        ),
        carry_out=delete_namespace,
        arguments=(_NAMESPACE,),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=HANDOFFS_FROM_LEVEL,
        command="namespaces delete NAMESPACE",
        supposition="",
    ),
)
