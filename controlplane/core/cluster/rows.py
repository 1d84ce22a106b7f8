"""The row of the cluster in the routing table."""

from dataclasses import dataclass, field
from typing import Final, get_args

from controlplane.core.cluster.events import ClusterEvent
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.cluster.policy import HashFunction
from controlplane.core.values.canonical import later, union_member
from controlplane.core.values.identifiers import Incarnation
from controlplane.core.values.row_kind import RowKind

SETTINGS_ID: Final = "settings"
"""The identifier of the only row of its kind."""
SAID_FROM_LEVEL: Final = 3
"""The feature level from which the row says the level, so that nodes know what every controller can read."""


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
        feature_level: of the log, from :data:`SAID_FROM_LEVEL` on; 0 below.
        incarnation_floor: a node without a row joins with a greater incarnation than this; 0 below.
    """

    slot_count: int
    replica_count: int
    hash_function: HashFunction
    silence_limit_ms: int
    feature_level: int = field(default=0, metadata=later(since_level=SAID_FROM_LEVEL))
    incarnation_floor: Incarnation = field(default=0, metadata=later(since_level=SAID_FROM_LEVEL))


def table_settings(cluster: ClusterImage) -> TableSettings:
    """The settings row of a cluster."""
    policy, feature_level = cluster.policy, cluster.feature_level
    return TableSettings(
        policy.slot_count,
        policy.replica_count,
        policy.hash_function,
        policy.silence_limit_ms,
        feature_level if feature_level >= SAID_FROM_LEVEL else 0,
        cluster.incarnation_floor,
    )


SETTINGS_ROWS: Final = RowKind(
    name="table",
    record=TableSettings,
    levels=(1, SAID_FROM_LEVEL),
    image=ClusterImage,
    ids=lambda image: [SETTINGS_ID] if image.feature_level else [],
    row=lambda image, _: table_settings(image) if image.feature_level else None,
    events=get_args(ClusterEvent),
    touched=lambda _: [SETTINGS_ID],
    id_of=lambda _: SETTINGS_ID,
    id_in_key=lambda text: text if text == SETTINGS_ID else None,
)
"""The row of the cluster's settings, ``main/table/settings``. It exists from the first term on."""
