"""One connection to Redis for the stores that run scripts in it; translates redis-py's errors, and retries nothing."""

import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from controlplane.config import ClusterConfig
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError, MissingExtraError
from controlplane.resources import resource_path

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError as error:
    raise MissingExtraError("controller", "the lease in Redis") from error


class RedisScript(Protocol):
    """A script in the server; called with its keys and its arguments, it returns the script's answer."""

    def __call__(self, keys: Sequence[str], *arguments: str | int) -> object:
        """Run the script."""


_NOT_USABLE: Final = (
    "the Redis address is not usable: write it as redis://HOST:6379/0, or with a login and TLS as "
    "rediss://USER:PASSWORD@HOST:6380/0?ssl_ca_certs=FILE; in a password write %23 for '#', %2F for '/', %40 for '@'"
)
_DENIED_IN_SCRIPT: Final = ("ACL failure in script", "The user executing the script can't")
"""The errors of Valkey and Redis 7 when a script calls what its user may not call; they have no code of their own."""
_CA_FILE: Final = "ssl_ca_certs"
_FILES: Final = (_CA_FILE, "ssl_certfile", "ssl_keyfile")
_USERS_FILE: Final = "infra/redis/users.conf"
_DENIED = (redis.exceptions.AuthenticationError, redis.exceptions.AuthorizationError)


class RedisConnection:
    """A connection for one request at a time. Not thread-safe.

    Args:
        cluster: named in errors.
        redis_url: for example ``redis://localhost:6379/0`` or ``rediss://user:password@host:6380/0``.
        timeout_ms: how long to wait for a connection, and for an answer.

    Raises:
        ConfigurationError: the address is not a Redis address, or names a file that cannot be used.
    """

    def __init__(self, cluster: ClusterConfig, redis_url: str, timeout_ms: int) -> None:
        """Set up; the first request opens the connection."""
        self._cluster = cluster
        _refuse_unclear(redis_url)
        timeout_s = timeout_ms / 1_000
        try:
            self.client = redis.Redis.from_url(
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
            # Without the text of redis-py's error: if the address was misread, it may contain a part of the password.
            raise ConfigurationError(_NOT_USABLE) from (None if "@" in redis_url else error)
        options = self.client.connection_pool.connection_kwargs
        _refuse_unusable_files(options)
        self._user = options.get("username") or "default"
        self._address = f"{options.get('host', options.get('path', 'localhost'))}:{options.get('port', 6379)}"

    def script(self, source: str) -> RedisScript:
        """A script to be run by its digest; redis-py sends the source to a server that does not know it.

        Calling it raises:
            LeaseStoreUnavailableError: no usable answer in time.
            ConfigurationError: the operator has to change a setting.
        """
        registered = self.client.register_script(source)

        def run(keys: Sequence[str], *arguments: str | int) -> object:
            with self.errors_translated(keys[0]):
                return registered(keys=keys, args=arguments)

        return run

    def close(self) -> None:
        """Close the connection."""
        self.client.close()

    @contextmanager
    def errors_translated(self, key: str) -> Iterator[None]:
        """Translate redis-py's errors: into no answer, or into an error that only the operator can correct."""
        try:
            yield
        except _DENIED as error:
            raise ConfigurationError(
                f"Redis at {self._address} refuses the credentials of user {self._user!r} ({error}): "
                "check user and password in the address"
            ) from error
        except redis.exceptions.NoPermissionError as error:
            raise self._not_allowed(error) from error
        except redis.exceptions.ResponseError as error:
            if any(words in str(error) for words in _DENIED_IN_SCRIPT):
                raise self._not_allowed(error) from error
            if "WRONGTYPE" in str(error):
                raise ConfigurationError(
                    f"Redis at {self._address} holds something else at {key} ({error}): "
                    "choose another database or cluster name, or delete the key"
                ) from error
            raise self._unavailable(error) from error
        except (redis.exceptions.RedisError, OSError) as error:
            raise self._unavailable(error) from error

    def _not_allowed(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"Redis at {self._address} denies user {self._user!r} a command that cluster "
            f"{self._cluster.name!r} needs ({str(error).rstrip('.')}): {resource_path(_USERS_FILE)} lists all rights"
        )

    def _unavailable(self, error: Exception) -> LeaseStoreUnavailableError:
        trouble = str(error).rstrip(".")
        return LeaseStoreUnavailableError(
            f"no usable answer from Redis at {self._address} for cluster {self._cluster.name!r}: {trouble}; "
            "check that it runs, is reachable and accepts writes"
        )


def _refuse_unclear(redis_url: str) -> None:
    """Refuse an address with '#', which ends it: of a password with '#', the beginning would be a host or a port."""
    if "#" in redis_url or not redis_url.startswith(("redis://", "rediss://", "unix://")):
        raise ConfigurationError(_NOT_USABLE)


def _refuse_unusable_files(options: Mapping[str, object]) -> None:
    """Refuse files that cannot be used; redis-py would report a missing file as a server that does not answer."""
    for name in _FILES:
        path = options.get(name)
        if path and not os.access(str(path), os.R_OK):
            raise ConfigurationError(f"the file in the Redis address cannot be read: {name}={path}")
    path = options.get(_CA_FILE)
    if path:
        try:
            ssl.create_default_context(cafile=str(path))
        except OSError as error:
            raise ConfigurationError(f"the Redis address has {_CA_FILE}={path}: it contains no certificates") from error
