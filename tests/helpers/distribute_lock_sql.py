"""SOFARegistry's ``distribute_lock`` in a SQL engine, by the statements of its ``distribute_lock.xml``: the oracle.

Each statement is unchanged, except for the hints, for ``on conflict do`` in place of ``ON DUPLICATE KEY``, and for the
functions that SQLite lacks, which are defined here with MySQL's meaning. Times are milliseconds.
"""

import math
import sqlite3
from collections.abc import Sequence

from controlplane.core.election.lock_record import LockReading, LockRecord
from controlplane.ports import Clock

_TABLE = """
CREATE TABLE distribute_lock (
  id integer primary key, data_center text NOT NULL, lock_name text NOT NULL, owner text NOT NULL,
  duration integer NOT NULL, term integer NOT NULL DEFAULT 0, term_duration integer NOT NULL DEFAULT 0,
  gmt_create integer NOT NULL, gmt_modified integer NOT NULL, UNIQUE (data_center, lock_name))
"""
_INSERT = """
INSERT INTO distribute_lock (data_center, lock_name, owner, duration, gmt_create, gmt_modified, term, term_duration)
VALUES (:data_center, :lock_name, :owner, :duration, NOW(3), NOW(3), :first_term, 0)
ON CONFLICT DO UPDATE SET lock_name = :lock_name
"""
_TAKE_OVER = """
update distribute_lock set owner = :new_owner, gmt_modified = NOW(3), term = (term + 1), term_duration = 0
where data_center = :data_center and lock_name = :lock_name and owner = :owner and term = :term
and term_duration = :term_duration and timestampdiff_second(gmt_modified, NOW()) > :duration/1000.0
"""
_RENEW = """
update distribute_lock set owner = :owner, gmt_modified = NOW(3), term_duration = (term_duration + 1)
where data_center = :data_center and lock_name = :lock_name and owner = :owner
"""
_GUARD = """
and term = :term and term_duration = :term_duration
and timestampdiff_second(gmt_modified, NOW()) < :duration/1000.0
"""
_FORCE_REFRESH = """
update distribute_lock set duration = :duration, gmt_modified = NOW(3)
where data_center = :data_center and lock_name = :lock_name and owner = :owner
"""
_COLUMNS = "data_center, lock_name, owner, duration, gmt_create, gmt_modified, term, term_duration"
_SELECT = f"select {_COLUMNS} from distribute_lock"  # noqa: S608 - our own columns


class SqlLockServer:
    """The table; its time is the clock's wall time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.create_function("NOW", -1, self._now)
        self.connection.create_function("timestampdiff_second", 2, lambda a, b: math.trunc((b - a) / 1_000))
        self.connection.execute(_TABLE)

    def lose_data(self) -> None:
        """Forget every row."""
        self.connection.execute("delete from distribute_lock")

    def _now(self, *precision: int) -> int:
        now_ms = self.clock.wall_ms()
        return now_ms if precision == (3,) else now_ms // 1_000 * 1_000


class SqlLockStore:
    """Implements :class:`controlplane.ports.LockStore` by the statements themselves."""

    def __init__(self, server: SqlLockServer, data_center: str, lock_name: str) -> None:
        self._server = server
        self._key = {"data_center": data_center, "lock_name": lock_name}

    def read(self) -> LockReading:
        """``queryDistLock``."""
        where = " where data_center = :data_center and lock_name = :lock_name"
        row = self._server.connection.execute(_SELECT + where, self._key).fetchone()
        return LockReading(None if row is None else LockRecord(*row), self._server.clock.wall_ms())

    def read_all(self) -> Sequence[LockReading]:
        """All rows, by data centre and name."""
        rows = self._server.connection.execute(_SELECT + " order by data_center, lock_name")
        return [LockReading(LockRecord(*row), self._server.clock.wall_ms()) for row in rows]

    def insert(self, owner: str, duration_ms: int, first_term: int) -> bool:
        """``competeLockOnInsert``; whether there was no row before, which the statement does not tell."""
        is_new = self.read().record is None
        self._run(_INSERT, owner=owner, duration=duration_ms, first_term=first_term)
        return is_new

    def take_over(self, new_owner: str, seen: LockRecord) -> bool:
        """``competeLockOnUpdate``."""
        return self._run(
            _TAKE_OVER,
            new_owner=new_owner,
            owner=seen.owner,
            term=seen.term,
            term_duration=seen.term_duration,
            duration=seen.duration_ms,
        )

    def renew(self, seen: LockRecord, *, guarded: bool) -> bool:
        """``ownerHeartbeat``, and as the article has it."""
        return self._run(
            _RENEW + (_GUARD if guarded else ""),
            owner=seen.owner,
            term=seen.term,
            term_duration=seen.term_duration,
            duration=seen.duration_ms,
        )

    def force_refresh(self, owner: str, duration_ms: int) -> bool:
        """``forceRefresh``."""
        return self._run(_FORCE_REFRESH, owner=owner, duration=duration_ms)

    def close(self) -> None:
        """The table stays."""

    def _run(self, statement: str, **parameters: str | int) -> bool:
        return self._server.connection.execute(statement, {**self._key, **parameters}).rowcount == 1
