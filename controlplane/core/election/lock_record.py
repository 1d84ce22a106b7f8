"""The record of SOFARegistry's table ``distribute_lock``, and what whoever reads it concludes.

Facts of SOFARegistry 6.x: ``distribute_lock.xml``, ``DistributeLockInfo`` and ``AbstractLeaderElector``. Two clocks are
in it: whether the lock has run out is judged by the store's, whether a leader still leads by the reader's own.
"""

from typing import Final, NamedTuple

from controlplane.core.values.identifiers import ControllerId


class LockRecord(NamedTuple):
    """One row, with every column.

    Attributes:
        data_center: with ``lock_name`` the row's key.
        lock_name: SOFARegistry's own is ``META-MASTER``.
        owner: who leads, or led last; a row is never without one.
        duration_ms: how long the owner may be silent before others may take over.
        gmt_create_ms: the store's time when the row was made.
        gmt_modified_ms: the store's time of the last renewal or take-over.
        term: number of take-overs, beginning with the first term of whoever made the row.
        term_duration: number of renewals in this term.
    """

    data_center: str
    lock_name: str
    owner: ControllerId
    duration_ms: int
    gmt_create_ms: int
    gmt_modified_ms: int
    term: int
    term_duration: int

    def has_run_out(self, store_now_ms: int) -> bool:
        """Whether a follower tries to take over; the store then judges again, by whole seconds."""
        return store_now_ms > self.gmt_modified_ms + self.duration_ms


class LockReading(NamedTuple):
    """A row, or None where there is none, and the store's time in the same answer."""

    record: LockRecord | None
    store_now_ms: int


class LeaderInfo(NamedTuple):
    """What a reader believes.

    Attributes:
        epoch: the row's ``gmt_modified_ms``, so it changes with every renewal; -1 before the first row.
        leader: the owner, or None.
        expires_at_ms: until then, by the reader's own wall clock, the owner leads: half the lock's duration.
    """

    epoch: int
    leader: ControllerId | None
    expires_at_ms: int


HAS_NO_LEADER: Final = LeaderInfo(-1, None, 0)


def leader_info(record: LockRecord) -> LeaderInfo:
    """Who leads by this row, and until when."""
    return LeaderInfo(record.gmt_modified_ms, record.owner, record.gmt_modified_ms + record.duration_ms // 2)
