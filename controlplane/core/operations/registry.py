"""The registry of operations, by the kind of intent that asks for each."""

from collections.abc import Mapping
from typing import Final

from controlplane.core.intents.intent import IntentKind
from controlplane.core.operations.bundle_operations import BUNDLE_OPERATIONS
from controlplane.core.operations.leader_operations import LEADER_OPERATIONS
from controlplane.core.operations.level_operations import LEVEL_OPERATIONS
from controlplane.core.operations.namespace_operations import NAMESPACE_OPERATIONS
from controlplane.core.operations.node_operations import NODE_OPERATIONS
from controlplane.core.operations.operation import Operation
from controlplane.core.operations.policy_operations import POLICY_OPERATIONS
from controlplane.core.operations.table_operations import TABLE_OPERATIONS
from controlplane.core.operations.tenant_operations import TENANT_OPERATIONS

OPERATIONS: Final[Mapping[IntentKind, Operation]] = {
    operation.kind: operation
    for operation in (
        *NAMESPACE_OPERATIONS,
        *BUNDLE_OPERATIONS,
        *TENANT_OPERATIONS,
        *NODE_OPERATIONS,
        *TABLE_OPERATIONS,
        *POLICY_OPERATIONS,
        *LEVEL_OPERATIONS,
        *LEADER_OPERATIONS,
    )
}
"""All operations by kind. A test compares the keys with :class:`~controlplane.core.intents.intent.IntentKind`."""

_BY_NAME: Final[Mapping[str, Operation]] = {kind.value: operation for kind, operation in OPERATIONS.items()}


def operation_named(kind: str) -> Operation | None:
    """The operation of the kind of intent with this name; None if the kind is not known."""
    return _BY_NAME.get(kind)
