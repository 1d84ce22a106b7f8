"""What the leader does when a node disappears from the registry, and when it comes back.

A node is in the registry while its session with the metadata store lasts. If the leader's own session was lost lately,
the store or the network is probably in trouble, many nodes may seem lost, and the leader waits: moving bundles that are
still served would interrupt their clients for nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

JITTER_MS: Final = 180_000
"""A session that was re-established at most so long ago may be lost again; and so long a clean-up waits meanwhile."""
_MAX_HEALTH_CHECK_RETRIES: Final = 3
_MAX_HEALTH_CHECK_DELAY_MS: Final = 1_000
_HEALTH_CHECK_DELAY_MS: Final = 50


class SessionEvent(Enum):
    """What happened last to a node's session with the metadata store."""

    REESTABLISHED = "SessionReestablished"
    LOST = "SessionLost"


class MetadataState(Enum):
    """How far the registry can be believed."""

    STABLE = "Stable"
    JITTERY = "Jittery"
    UNSTABLE = "Unstable"


def metadata_state(last_event: SessionEvent, age_ms: int | None) -> MetadataState:
    """The state of a node's connection with the metadata store.

    Args:
        last_event: the last event of its session; at first :attr:`SessionEvent.REESTABLISHED`.
        age_ms: time since that event; None if there was none since the node started, which counts as long ago.
    """
    if last_event is SessionEvent.LOST:
        return MetadataState.UNSTABLE
    return MetadataState.STABLE if age_ms is None or age_ms > JITTER_MS else MetadataState.JITTERY


class DeletionAnswer(Enum):
    """What the leader does about a node that disappeared."""

    CLEANS_UP_NOW = "cleans-up-now"
    CLEANS_UP_LATER = "cleans-up-later"
    """After :data:`JITTER_MS`, unless the node comes back."""
    ALREADY_SCHEDULED = "already-scheduled"
    NOT_LEADER = "not-leader"
    """Another node leads the table and takes care."""
    UNSTABLE = "unstable"
    """The leader has lost the metadata store itself."""
    DISABLED = "disabled"
    """The leader is shutting down."""


@dataclass(frozen=True, slots=True)
class CleanUps:
    """The clean-ups that are scheduled.

    Attributes:
        due_ms: by node, when its bundles are given to others; the leader's clock.
    """

    due_ms: Mapping[str, int] = field(default_factory=dict)

    def due(self, now_ms: int) -> tuple[str, ...]:
        """The nodes to clean up now, in the order in which they were scheduled."""
        return tuple(node_id for node_id, due_ms in self.due_ms.items() if due_ms <= now_ms)

    def without(self, node_id: str) -> "CleanUps":
        """The clean-ups after that of a node has ended, whatever came of it."""
        return CleanUps({each: due_ms for each, due_ms in self.due_ms.items() if each != node_id})


class NodeDeleted(NamedTuple):
    """What the leader does about a node that disappeared, and the clean-ups afterwards."""

    answer: DeletionAnswer
    clean_ups: CleanUps


def on_node_deleted(
    node_id: str,
    now_ms: int,
    clean_ups: CleanUps,
    state: MetadataState,
    *,
    is_leader: bool,
    is_disabled: bool = False,
) -> NodeDeleted:
    """What happens when a node has disappeared from the registry.

    Args:
        node_id: the node that disappeared.
        now_ms: this node's clock.
        clean_ups: what is scheduled.
        state: this node's connection with the metadata store.
        is_leader: whether this node owns the ownership channel.
        is_disabled: whether this node is shutting down.
    """
    if not is_leader:
        return NodeDeleted(DeletionAnswer.NOT_LEADER, clean_ups)
    if state is MetadataState.UNSTABLE:
        return NodeDeleted(DeletionAnswer.UNSTABLE, clean_ups)
    if is_disabled:
        return NodeDeleted(DeletionAnswer.DISABLED, clean_ups)
    if node_id in clean_ups.due_ms:
        return NodeDeleted(DeletionAnswer.ALREADY_SCHEDULED, clean_ups)
    is_stable = state is MetadataState.STABLE
    due_ms = now_ms if is_stable else now_ms + JITTER_MS
    answer = DeletionAnswer.CLEANS_UP_NOW if is_stable else DeletionAnswer.CLEANS_UP_LATER
    return NodeDeleted(answer, CleanUps({**clean_ups.due_ms, node_id: due_ms}))


class CreationAnswer(Enum):
    """What happens to a scheduled clean-up when its node is in the registry again."""

    NOTHING_SCHEDULED = "nothing-scheduled"
    CANCELLED = "cancelled"
    NOT_HEALTHY = "not-healthy"
    """The clean-up stays: the node registered, but does not serve."""


class NodeCreated(NamedTuple):
    """What became of a node's clean-up, and the clean-ups afterwards."""

    answer: CreationAnswer
    clean_ups: CleanUps


def on_node_created(node_id: str, clean_ups: CleanUps, *, is_healthy: bool) -> NodeCreated:
    """What happens when a node is in the registry again.

    Args:
        node_id: the node.
        clean_ups: what is scheduled.
        is_healthy: the node passed a health check. It is only needed if a clean-up of the node is scheduled.
    """
    if node_id not in clean_ups.due_ms:
        return NodeCreated(CreationAnswer.NOTHING_SCHEDULED, clean_ups)
    if not is_healthy:
        return NodeCreated(CreationAnswer.NOT_HEALTHY, clean_ups)
    return NodeCreated(CreationAnswer.CANCELLED, clean_ups.without(node_id))


def health_check_delay_ms(failures: int) -> int | None:
    """After how long a failed health check is repeated; None if the node counts as dead.

    Args:
        failures: how often it has failed, at least 1.
    """
    retry = failures - 1
    if retry >= _MAX_HEALTH_CHECK_RETRIES:
        return None
    return min(_MAX_HEALTH_CHECK_DELAY_MS, retry * retry * _HEALTH_CHECK_DELAY_MS)
