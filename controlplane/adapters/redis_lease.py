"""The lease in Redis (or Valkey); its rules run in the server: :mod:`controlplane.adapters.redis_scripts`."""

from collections.abc import Sequence
from typing import TypeAlias, cast

from controlplane.adapters import redis_scripts
from controlplane.adapters.redis_connection import RedisConnection, RedisScript
from controlplane.config import ClusterConfig
from controlplane.core.election.contenders import Contenders, Contending, Outranking, Presence
from controlplane.core.log.log_mark import LogMark
from controlplane.core.values.identifiers import ControllerId, ProcessId, Seq, Term
from controlplane.ports import (
    AcquireOutcome,
    ContenderNote,
    LeaseGranted,
    LeaseHeld,
    LeaseLeft,
    LeaseMissing,
    LeaseRenewed,
    RenewOutcome,
)

_Answer: TypeAlias = list[str]


class RedisLeaseStore:
    """Implements :class:`controlplane.ports.LeaseStore`. Not thread-safe: one connection, one request at a time.

    Nothing is retried here: the election decides what an unanswered request means.

    Args:
        cluster: determines the keys.
        redis_url: for example ``redis://localhost:6379/0`` or ``rediss://user:password@host:6380/0``.
        timeout_ms: how long to wait for a connection, and for an answer.
        process: distinguishes the processes that use one name; not needed for reading.

    Raises:
        ConfigurationError: the address is not a Redis address.
    """

    def __init__(self, cluster: ClusterConfig, redis_url: str, timeout_ms: int = 400, process: ProcessId = "") -> None:
        """Set up; the first request opens the connection."""
        self._cluster = cluster
        self._process = process
        self._redis = RedisConnection(cluster, redis_url, timeout_ms)
        self._acquire = self._redis.script(redis_scripts.ACQUIRE)
        self._renew = self._redis.script(redis_scripts.RENEW)
        self._release = self._redis.script(redis_scripts.RELEASE)
        self._read = self._redis.script(redis_scripts.READ)
        self._write_mark = self._redis.script(redis_scripts.WRITE_MARK)
        self._write_note = self._redis.script(redis_scripts.WRITE_NOTE)
        self._read_note = self._redis.script(redis_scripts.READ_NOTE)
        self._contenders = self._redis.script(redis_scripts.CONTENDERS)

    def acquire(
        self, owner: ControllerId, floor: Term, duration_ms: int, priority: int | None = None
    ) -> AcquireOutcome:
        """See :meth:`controlplane.ports.LeaseStore.acquire`."""
        answer = self._run(
            self._acquire, owner, self._process, floor, duration_ms, "" if priority is None else priority
        )
        if answer[0] == "left":
            return LeaseLeft(answer[1], int(answer[2]))
        return LeaseGranted(Term(int(answer[1]))) if answer[0] == "granted" else _held(answer)

    def renew(self, owner: ControllerId, term: Term, duration_ms: int, priority: int = 0) -> RenewOutcome:
        """See :meth:`controlplane.ports.LeaseStore.renew`; an expired lease counts as missing, also for its owner."""
        answer = self._run(self._renew, owner, self._process, term, duration_ms, priority)
        if answer[0] == "renewed":
            above = Outranking(answer[2], int(answer[3]), int(answer[4])) if answer[2] else None
            return LeaseRenewed(Term(int(answer[1])), above)
        return _held_or_missing(answer)

    def contenders(self) -> Sequence[Contending]:
        """See :meth:`controlplane.ports.LeaseStore.contenders`."""
        now_ms, *entries = self._run(self._contenders)
        pairs = zip(entries[::2], entries[1::2], strict=True)
        known = Contenders({owner: Presence(*map(int, entry.split())) for owner, entry in pairs})
        return known.contending(int(now_ms))

    def release(self, owner: ControllerId, term: Term) -> bool:
        """See :meth:`controlplane.ports.LeaseStore.release`."""
        return self._run(self._release, owner, self._process, term)[0] == "released"

    def read(self) -> LeaseHeld | LeaseMissing:
        """See :meth:`controlplane.ports.LeaseStore.read`."""
        return _held_or_missing(self._run(self._read))

    def read_log_id(self) -> str | None:
        """See :meth:`controlplane.ports.LeaseStore.read_log_id`."""
        key = self._cluster.log_id_key
        with self._redis.errors_translated(key):
            return cast("str | None", self._redis.client.get(key))

    def write_log_id(self, log_id: str) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_log_id`."""
        key = self._cluster.log_id_key
        with self._redis.errors_translated(key):
            self._redis.client.set(key, log_id)

    def read_mark(self) -> LogMark | None:
        """See :meth:`controlplane.ports.LeaseStore.read_mark`."""
        key = self._cluster.log_mark_key
        with self._redis.errors_translated(key):
            found = cast("list[str | None]", self._redis.client.hmget(key, ["log_id", "term", "seq"]))
        log_id, term, seq = (value or "" for value in found)
        return LogMark(log_id, Term(int(term)), Seq(int(seq))) if log_id else None

    def write_mark(self, mark: LogMark) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_mark`."""
        self._write_mark([self._cluster.log_mark_key], mark.log_id, mark.term, mark.seq)

    def write_note(self, owner: ControllerId, acknowledged_ms: int, longest_unanswered_ms: int | None) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_note`."""
        self._write_note(
            [self._cluster.acknowledged_key],
            owner,
            acknowledged_ms,
            "" if longest_unanswered_ms is None else longest_unanswered_ms,
        )

    def read_note(self, owner: ControllerId) -> ContenderNote:
        """See :meth:`controlplane.ports.LeaseStore.read_note`."""
        answer = cast("_Answer", self._read_note([self._cluster.acknowledged_key], owner))
        return ContenderNote(*(int(age_ms) if age_ms else None for age_ms in answer))

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def _run(self, script: RedisScript, *arguments: str | int) -> _Answer:
        return cast("_Answer", script([self._cluster.lease_key, self._cluster.contenders_key], *arguments))


def _held(answer: _Answer) -> LeaseHeld:
    """Convert the answer ``held, owner, process, term, remaining_ms``."""
    return LeaseHeld(answer[1], answer[2], Term(int(answer[3])), int(answer[4]))


def _held_or_missing(answer: _Answer) -> LeaseHeld | LeaseMissing:
    return LeaseMissing() if answer[0] == "missing" else _held(answer)
