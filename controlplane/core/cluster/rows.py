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
    """The settings of the cluster's policy that clients and nodes use.

    Attributes:
        slot_count: number of hash slots.
        replica_count: number of replicas of a slot, including the slot leader.
        hash_function: the hash function from a key to a slot.
        silence_limit_ms: log time without a heartbeat after which a node is fenced. A node that is cut off from the log
            has to stop serving before that.
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
"""The row of the cluster's settings, ``main/table/settings``. It exists from the first term on."""
