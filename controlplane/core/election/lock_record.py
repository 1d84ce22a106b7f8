"""The record of SOFARegistry's table ``distribute_lock``, and the leader that follows from it.

The rules are those of SOFARegistry 6.x: ``distribute_lock.xml``, ``DistributeLockInfo`` and ``AbstractLeaderElector``.
They use two clocks. The store's clock determines whether the lock has expired. The reader's clock determines whether
the leader still leads.
"""

from typing import Final, NamedTuple

from controlplane.core.values.identifiers import ControllerId


class LockRecord(NamedTuple):
    """One row, with every column.

    Attributes:
        data_center: with ``lock_name`` the row's key.
        lock_name: SOFARegistry's own is ``META-MASTER``.
        owner: the controller that leads or led last; never empty.
        duration_ms: time without a renewal after which others may take over.
        gmt_create_ms: the store's time when the row was inserted.
        gmt_modified_ms: the store's time of the last renewal or take-over.
        term: the first term, set by the controller that inserted the row, plus the number of take-overs.
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
        """Whether a contender tries to take over. The store then checks the expiry again, in whole seconds."""
        return store_now_ms > self.gmt_modified_ms + self.duration_ms


class LockReading(NamedTuple):
    """The row, or None without one, and the store's time in the same answer."""

    record: LockRecord | None
    store_now_ms: int


class LeaderInfo(NamedTuple):
    """The leader as a reader of the row sees it.

    Attributes:
        epoch: the row's ``gmt_modified_ms``, so it changes with every renewal; -1 before the first row.
        leader: the row's owner, or None.
        expires_at_ms: end of the leadership by the reader's wall clock: half the lock's duration after ``epoch``.
    """

    epoch: int
    leader: ControllerId | None
    expires_at_ms: int


HAS_NO_LEADER: Final = LeaderInfo(-1, None, 0)


def leader_info(record: LockRecord) -> LeaderInfo:
    """The leader by this row."""
    return LeaderInfo(record.gmt_modified_ms, record.owner, record.gmt_modified_ms + record.duration_ms // 2)
