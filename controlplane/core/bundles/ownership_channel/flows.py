"""What a node does when it reads a record of the ownership table: a passive machine without a memory.

An assignment: *Assigning* -> the destination publishes *Owned*. An unload: *Releasing* -> the source closes its topics
and publishes *Free*. A transfer: *Releasing* with both nodes -> the source closes its storage and publishes *Assigning*
-> the destination publishes *Owned* -> the source disconnects its clients and tells them the destination, so that they
need no look-up. A split: *Splitting* -> the source divides the bundle (see ``division``) and publishes *Deleted*, and
deletes that record when it reads it.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from controlplane.core.bundles.ownership_channel.record import OwnershipRecord, next_version
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.ownership_channel.table import Written
from controlplane.core.bundles.ownership_state import OwnershipState


class CloseTopics(NamedTuple):
    """Close the topics of a bundle.

    Attributes:
        bundle_id: the bundle.
        disconnects_clients: whether the clients are disconnected too. Otherwise they stay connected, and what they send
            is not answered: they send it again to the new owner.
        new_owner: the node that the clients are told to go to; None if they have to look it up.
    """

    bundle_id: str
    disconnects_clients: bool
    new_owner: str | None = None


class Serve(NamedTuple):
    """Serve a bundle from now on."""

    bundle_id: str


class Divide(NamedTuple):
    """Divide a bundle, as ``split_steps.split_steps`` says for this record."""

    bundle_id: str
    record: OwnershipRecord


class WithdrawLoad(NamedTuple):
    """Forget the node's measured load and delete its stored report, so that no rule decides on the former bundles.

    The deletion happens once in ten seconds at most (``report_rule.withdrawal_due``).
    """

    bundle_id: str


Action: TypeAlias = Written | CloseTopics | Serve | Divide | WithdrawLoad
"""A record to publish, or something that the node does itself."""


@dataclass(frozen=True, slots=True)
class Participant:
    """A node at the table.

    Attributes:
        node_id: the node.
        settings: how it unloads, and what it does at its start.
        is_disabled: it is shutting down, and carries out forced records alone: those that take its bundles away.
    """

    node_id: str
    settings: OwnershipSettings
    is_disabled: bool = False

    def on_record(self, written: Written, now_ms: int) -> tuple[Action, ...]:
        """What the node does when a record has been taken into its table.

        Args:
            written: the bundle and its record. A deletion is no occasion for a node to do anything.
            now_ms: the node's clock, for the records that it publishes.

        Returns:
            The actions in order, each to begin when the one before has succeeded. If one fails, the others are left
            out, and the leader repairs the bundle after a while.
        """
        bundle_id, record = written
        if record is None or (self.is_disabled and not record.is_forced):
            return ()
        if record.destination == self.node_id and record.state is OwnershipState.ASSIGNING:
            return (self._confirmed(bundle_id, record, now_ms),)
        if record.destination == self.node_id and record.state is OwnershipState.OWNED:
            return Serve(bundle_id), WithdrawLoad(bundle_id)
        return self._as_source(bundle_id, record, now_ms) if record.source == self.node_id else ()

    def at_start(self, written: Written, now_ms: int) -> tuple[Action, ...]:
        """What the node does about a record that it finds when it opens the table."""
        bundle_id, record = written
        if record is None or record.destination != self.node_id:
            return ()
        if record.state is OwnershipState.OWNED:
            return (Serve(bundle_id),)
        if record.state is OwnershipState.ASSIGNING and not self.settings.leaves_assigned_at_start:
            return (self._confirmed(bundle_id, record, now_ms),)
        return ()

    def _as_source(self, bundle_id: str, record: OwnershipRecord, now_ms: int) -> tuple[Action, ...]:
        match record.state:
            case OwnershipState.OWNED if self._still_has_clients(record):
                return (CloseTopics(bundle_id, disconnects_clients=True, new_owner=record.destination),)
            case OwnershipState.RELEASING:
                return self._released(bundle_id, record, now_ms)
            case OwnershipState.SPLITTING:
                return Divide(bundle_id, record), WithdrawLoad(bundle_id)
            case OwnershipState.FREE if record.is_forced:
                return CloseTopics(bundle_id, disconnects_clients=True), Written(bundle_id, None)
            case OwnershipState.DELETED:
                return (Written(bundle_id, None),)
            case _:
                return ()

    def _confirmed(self, bundle_id: str, record: OwnershipRecord, now_ms: int) -> Written:
        version = next_version(record)
        owned = OwnershipRecord(OwnershipState.OWNED, record.destination, record.source, version, now_ms)
        return Written(bundle_id, owned)

    def _released(self, bundle_id: str, record: OwnershipRecord, now_ms: int) -> tuple[Action, ...]:
        if record.is_transfer:
            state, disconnects = OwnershipState.ASSIGNING, not self.settings.unloads_in_phases
        else:
            state, disconnects = OwnershipState.FREE, True
        destination = record.destination if record.is_transfer else None
        released = OwnershipRecord(state, destination, record.source, next_version(record), now_ms)
        return CloseTopics(bundle_id, disconnects), Written(bundle_id, released), WithdrawLoad(bundle_id)

    def _still_has_clients(self, record: OwnershipRecord) -> bool:
        """Whether the former owner has clients left: it unloads in phases, or it was taken for dead."""
        return record.is_forced or (record.is_transfer and self.settings.unloads_in_phases)
