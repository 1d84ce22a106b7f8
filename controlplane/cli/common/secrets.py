"""Secrets on the command line are refused, because every user of the machine sees them in the list of processes."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from controlplane.errors import ConfigurationError

_SECRET_WORDS = ("password", "secret", "key.pem", "token", "jaas")


def refuse_secrets_in_sight(context: click.Context, security: Mapping[str, str], redis_url: str | None) -> None:
    """Refuse secrets that were given on the command line.

    Args:
        context: of the global options, with the source of each value.
        security: the settings that were given as ``KEY=VALUE``, not in a file.
        redis_url: Redis' address.

    Raises:
        ConfigurationError: there is one. The message does not contain it.
    """
    if context.get_parameter_source("security") is ParameterSource.COMMANDLINE:
        seen = [name for name in security if any(word in name.lower() for word in _SECRET_WORDS)]
        if seen:
            raise ConfigurationError(
                f"--security {seen[0]}=...: every user of this machine would see it in the list of processes; write "
                "such settings to a file that only you can read, and give the file's name"
            )
    given = context.get_parameter_source("redis_url") is ParameterSource.COMMANDLINE
    if given and redis_url is not None and _has_password(redis_url):
        raise ConfigurationError(
            "--redis-url with a password: every user of this machine would see it in the list of processes; give the "
            "address in the environment, as CONTROLPLANE_REDIS_URL"
        )


def _has_password(url: str) -> bool:
    return ":" in urlsplit(url).netloc.rpartition("@")[0] or "password=" in url
