"""Which of two records of a bundle counts: the one in the table, or the one that was read after it.

Every reader and the compaction of the topic apply this rule (Pulsar's ServiceUnitStateDataConflictResolver). Of several
nodes that publish a following record at the same time, the first valid one therefore wins everywhere.
"""

from enum import Enum

from controlplane.core.bundles.ownership_channel.record import (
    FIRST_VERSION,
    GREATEST_VERSION,
    LEAST_VERSION,
    OwnershipRecord,
    is_blank,
    state_of,
)
from controlplane.core.bundles.ownership_channel.states import NEXT_STATES, Storage
from controlplane.core.bundles.ownership_state import OwnershipState


class Verdict(Enum):
    """Whether a record that was read is taken, and why."""

    DELETION = "deletion"
    """Taken: the record is deleted."""
    FIRST = "first"
    """Taken: the bundle's first record in the metadata store."""
    GAP = "gap"
    """Taken: records between the two are missing, which the topic's compaction dropped."""
    FORCED = "forced"
    """Taken: the leader repairs the bundle."""
    VALID = "valid"
    """Taken: it follows the present record."""
    OLD_VERSION = "old-version"
    """Kept: the version is not greater than the present one."""
    VERSION_GAP = "version-gap"
    """Kept: the metadata store has no gaps."""
    NOT_FIRST_VERSION = "not-first-version"
    """Kept: the first record in the metadata store has version 1."""
    STATE = "state"
    """Kept: this state does not follow the present one."""
    NODES = "nodes"
    """Kept: the nodes do not match those of the present record."""
    INIT = "init"
    """Kept, by every table and by compaction: *Init* means that there is no record, and no node writes one. Taken, it
    would be lost on readers that start with what compaction leaves."""
    NO_OWNER = "no-owner"
    """Kept: the present record is *Owned* without a destination, so nothing can be compared with it. Pulsar fails with
    a NullPointerException, which its reader logs, and the present record stays there too."""

    @property
    def keeps(self) -> bool:
        """Whether the table stays as it is."""
        return self in _KEPT


_KEPT = frozenset(
    {
        Verdict.OLD_VERSION,
        Verdict.VERSION_GAP,
        Verdict.NOT_FIRST_VERSION,
        Verdict.STATE,
        Verdict.NODES,
        Verdict.INIT,
        Verdict.NO_OWNER,
    }
)


def judge(present: OwnershipRecord | None, read: OwnershipRecord | None, storage: Storage) -> Verdict:
    """Whether a record takes the place of the present one (the opposite of Pulsar's shouldKeepLeft).

    Args:
        present: the record in the table; None without one.
        read: the record that was read after it; None deletes the present one.
        storage: where the records are kept.
    """
    if read is None:
        return Verdict.DELETION
    by_version = _judge_version(present, read, storage)
    if by_version is not None:
        return by_version
    if read.is_forced:
        return Verdict.FORCED
    if read.state not in NEXT_STATES[storage][state_of(present)]:
        return Verdict.STATE
    return Verdict.VALID if present is None else _judge_nodes(present, read)


def _judge_version(present: OwnershipRecord | None, read: OwnershipRecord, storage: Storage) -> Verdict | None:
    """The verdict, if versions alone decide."""
    if present is None:
        if storage is Storage.SYSTEM_TOPIC:
            return None
        return Verdict.FIRST if read.version == FIRST_VERSION else Verdict.NOT_FIRST_VERSION
    if (present.version, read.version) == (GREATEST_VERSION, LEAST_VERSION):
        return None
    if present.version >= read.version:
        return Verdict.OLD_VERSION
    if present.version < read.version - 1:
        return Verdict.GAP if storage is Storage.SYSTEM_TOPIC else Verdict.VERSION_GAP
    return None


def _judge_nodes(present: OwnershipRecord, read: OwnershipRecord) -> Verdict:
    same = (present.destination, present.source) == (read.destination, read.source)
    match present.state, read.state:
        case OwnershipState.OWNED, OwnershipState.SPLITTING:
            if not is_blank(read.destination):
                return Verdict.NODES
            return _judge_owner(present, matches=present.destination == read.source)
        case OwnershipState.OWNED, OwnershipState.RELEASING:
            if is_blank(read.source):
                return Verdict.NODES
            matches = present.destination == read.source and present.destination != read.destination
            return _judge_owner(present, matches=matches)
        case OwnershipState.RELEASING, OwnershipState.ASSIGNING:
            matches = same and not is_blank(read.destination)
        case (
            (OwnershipState.ASSIGNING, OwnershipState.OWNED)
            | (OwnershipState.RELEASING, OwnershipState.FREE)
            | (OwnershipState.SPLITTING, OwnershipState.DELETED)
        ):
            matches = same
        case OwnershipState.FREE, OwnershipState.ASSIGNING:
            matches = is_blank(read.source) and not is_blank(read.destination)
        case _:
            matches = True
    return Verdict.VALID if matches else Verdict.NODES


def _judge_owner(present: OwnershipRecord, *, matches: bool) -> Verdict:
    if present.destination is None:
        return Verdict.NO_OWNER
    return Verdict.VALID if matches else Verdict.NODES
