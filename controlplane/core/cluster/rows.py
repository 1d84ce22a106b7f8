"""The row of the cluster in the routing table."""

from dataclasses import dataclass
from typing import Final, get_args

from controlplane.core.cluster.events import ClusterEvent
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.cluster.policy import ClusterPolicy, HashFunction
from controlplane.core.values.canonical import union_member
from controlplane.core.values.row_kind import RowKind

SETTINGS_ID: Final = "settings"
"""The identifier of the only row of its kind."""


@union_member
@dataclass(frozen=True, slots=True)
class TableSettings:
    """What routers and nodes follow of the cluster's policy.

    Attributes:
        slot_count, replica_count, hash_function: what turns a key into a slot's holders.
        silence_limit_ms: when a node that is cut off from the log has to have stopped serving.
    """

    slot_count: int
    replica_count: int
    hash_function: HashFunction
    silence_limit_ms: int


def table_settings(policy: ClusterPolicy) -> TableSettings:
    """The settings row of a cluster with this policy."""
    return TableSettings(policy.slot_count, policy.replica_count, policy.hash_function, policy.silence_limit_ms)


SETTINGS_ROWS: Final = RowKind(
    name="table",
    record=TableSettings,
    image=ClusterImage,
    ids=lambda image: [SETTINGS_ID] if image.feature_level else [],
    row=lambda image, _: table_settings(image.policy) if image.feature_level else None,
    events=get_args(ClusterEvent),
    touched=lambda _: [SETTINGS_ID],
    id_of=lambda _: SETTINGS_ID,
    id_in_key=lambda text: text if text == SETTINGS_ID else None,
)
"""The row of the cluster's settings, ``main/table/settings``: a log has it from its first term on."""
