"""The lease in Redis (or Valkey); its rules run in the server: :mod:`controlplane.adapters.redis_scripts`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias, cast

from controlplane.adapters import redis_scripts
from controlplane.config import ClusterConfig
from controlplane.core.identifiers import ControllerId, Term
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError, MissingExtraError
from controlplane.ports import (
    AcquireOutcome,
    LeaseGranted,
    LeaseHeld,
    LeaseMissing,
    LeaseRenewed,
    RenewOutcome,
)

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.commands.core import Script
    from redis.retry import Retry
except ModuleNotFoundError as error:
    raise MissingExtraError("controller", "the lease in Redis") from error

_Answer: TypeAlias = list[str]

_DENIED = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
    redis.exceptions.NoPermissionError,
)


class RedisLeaseStore:
    """Implements :class:`controlplane.ports.LeaseStore`. Not thread-safe: one connection, one request at a time.

    Nothing is retried here: the election decides what an unanswered request means.

    Args:
        cluster: names the keys.
        redis_url: for example ``redis://localhost:6379/0`` or ``rediss://user:password@host:6380/0``.
        timeout_ms: how long to wait for a connection, and for an answer.

    Raises:
        ConfigurationError: the address is not a Redis address.
    """

    def __init__(self, cluster: ClusterConfig, redis_url: str, timeout_ms: int = 400) -> None:
        """Prepare; the connection is made by the first request."""
        self._cluster = cluster
        timeout_s = timeout_ms / 1_000
        try:
            self._redis = redis.Redis.from_url(
                redis_url,
                decode_responses=True,
                protocol=2,
                single_connection_client=False,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                socket_keepalive=True,
                health_check_interval=0,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise ConfigurationError(
                f"the Redis address is not usable ({error}): write it as redis://host:6379/0"
            ) from error
        options = self._redis.connection_pool.connection_kwargs
        self._address = f"{options.get('host', options.get('path', 'localhost'))}:{options.get('port', 6379)}"
        self._acquire = self._redis.register_script(redis_scripts.ACQUIRE)
        self._renew = self._redis.register_script(redis_scripts.RENEW)
        self._release = self._redis.register_script(redis_scripts.RELEASE)
        self._read = self._redis.register_script(redis_scripts.READ)

    def acquire(self, owner: ControllerId, floor: Term, duration_ms: int) -> AcquireOutcome:
        """See :meth:`controlplane.ports.LeaseStore.acquire`."""
        answer = self._run(self._acquire, owner, floor, duration_ms)
        return LeaseGranted(Term(int(answer[1]))) if answer[0] == "granted" else _held(answer)

    def renew(self, owner: ControllerId, term: Term, duration_ms: int) -> RenewOutcome:
        """See :meth:`controlplane.ports.LeaseStore.renew`; a lease that ran out is missing, even for its last owner."""
        answer = self._run(self._renew, owner, term, duration_ms)
        if answer[0] == "renewed":
            return LeaseRenewed(Term(int(answer[1])))
        return _held_or_missing(answer)

    def release(self, owner: ControllerId, term: Term) -> bool:
        """See :meth:`controlplane.ports.LeaseStore.release`."""
        return self._run(self._release, owner, term)[0] == "released"

    def read(self) -> LeaseHeld | LeaseMissing:
        """See :meth:`controlplane.ports.LeaseStore.read`."""
        return _held_or_missing(self._run(self._read))

    def read_log_id(self) -> str | None:
        """See :meth:`controlplane.ports.LeaseStore.read_log_id`."""
        with self._errors_translated():
            return cast("str | None", self._redis.get(self._cluster.log_id_key))

    def write_log_id(self, log_id: str) -> None:
        """See :meth:`controlplane.ports.LeaseStore.write_log_id`."""
        with self._errors_translated():
            self._redis.set(self._cluster.log_id_key, log_id)

    def close(self) -> None:
        """Give the connection back."""
        self._redis.close()

    def _run(self, script: Script, *arguments: str | int) -> _Answer:
        """Run a script by its digest; redis-py sends the source to a server that does not know it."""
        with self._errors_translated():
            return cast("_Answer", script(keys=[self._cluster.lease_key], args=arguments))

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        """Turn what redis-py raises into our errors: no answer, or an answer that only the operator can change."""
        try:
            yield
        except _DENIED as error:
            raise ConfigurationError(
                f"Redis at {self._address} refuses these credentials ({error}): "
                f"give a user that may run EVALSHA, EVAL, GET and SET on controlplane:{{{self._cluster.name}}}:*"
            ) from error
        except redis.exceptions.ResponseError as error:
            if str(error).startswith("WRONGTYPE"):
                raise ConfigurationError(
                    f"Redis at {self._address} holds something else at {self._cluster.lease_key} ({error}): "
                    "choose another database or cluster name, or delete the key"
                ) from error
            raise self._unavailable(error) from error
        except (redis.exceptions.RedisError, OSError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> LeaseStoreUnavailableError:
        trouble = str(error).rstrip(".")
        return LeaseStoreUnavailableError(
            f"no usable answer from Redis at {self._address} for cluster {self._cluster.name!r}: {trouble}; "
            "check that it runs, is reachable and accepts writes"
        )


def _held(answer: _Answer) -> LeaseHeld:
    """The answer ``held, owner, term, remaining_ms`` as a value."""
    return LeaseHeld(owner=answer[1], term=Term(int(answer[2])), remaining_ms=int(answer[3]))


def _held_or_missing(answer: _Answer) -> LeaseHeld | LeaseMissing:
    return LeaseMissing() if answer[0] == "missing" else _held(answer)
