"""The options for the way in which a controller stands for election."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from controlplane.cli.common.settings_option import parse_settings
from controlplane.config import DEFAULT_LEASE_PROFILE, SOFA_LEASE_PROFILE, LeaseConfig, SofaLeaseConfig
from controlplane.errors import ConfigurationError

_OF_THE_DEFAULT = ("lease_duration_ms", "priority", "handover_after_ms", "stop_when_lease_store_is_lost")
"""Options that lease profile ``sofa`` does not use, by the names of their parameters."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class LeaseChoice:
    """The values of the options.

    Attributes:
        lease: the lease's durations.
        sofa_lease: SOFARegistry's lock in place of the lease, or None.
        stop_when_store_is_lost: whether to step down when Redis does not answer.
    """

    lease: LeaseConfig
    sofa_lease: SofaLeaseConfig | None
    stop_when_store_is_lost: bool


def lease_options(command: _Command) -> Callable[..., Any]:
    """The options of a command that stands for election, passed to it as one ``lease``."""

    @wraps(command)
    def with_lease(
        *arguments: object,
        lease_duration_ms: int,
        stop_when_lease_store_is_lost: bool,
        lease_profile: str,
        lease_settings: tuple[str, ...],
        priority: int,
        handover_after_ms: int,
        **options: object,
    ) -> object:
        sofa_lease = _sofa_lease(lease_profile, lease_settings)
        own_lease = LeaseConfig(duration_ms=lease_duration_ms, priority=priority, handover_after_ms=handover_after_ms)
        lease = LeaseChoice(own_lease, sofa_lease, stop_when_lease_store_is_lost)
        return command(*arguments, lease=lease, **options)

    duration = click.option(
        "--lease-duration-ms",
        default=LeaseConfig().duration_ms,
        help="How long the lease lasts without a renewal; then another controller takes over. Lease profile 'sofa' "
        "has a --lease-setting duration_ms instead.",
    )
    stops = click.option(
        "--stop-when-lease-store-is-lost",
        is_flag=True,
        help="Step down when Redis has not answered for a lease duration; the default leads on.",
    )
    profile = click.option(
        "--lease-profile",
        type=click.Choice([DEFAULT_LEASE_PROFILE, SOFA_LEASE_PROFILE]),
        default=DEFAULT_LEASE_PROFILE,
        show_default=True,
        help="How it stands for election: by the default lease, or as SOFARegistry's meta servers do.",
    )
    setting = click.option(
        "--lease-setting",
        "lease_settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of the lease profile 'sofa', such as data_center=dc1 or renewal=guarded; repeatable.",
    )
    preferred = click.option(
        "--priority",
        type=click.IntRange(min=0),
        default=LeaseConfig().priority,
        show_default=True,
        help="The priority of this controller; others leave a free lease to a greater one for half a lease duration.",
    )
    handover = click.option(
        "--handover-after-ms",
        type=click.IntRange(min=0),
        default=LeaseConfig().handover_after_ms,
        show_default=True,
        help="A leader hands over to a preferred standby after both have run for this long; 0: never.",
    )
    return duration(stops(preferred(handover(profile(setting(with_lease))))))


def _refuse_options_of_the_default() -> None:
    context = click.get_current_context()
    for name in _OF_THE_DEFAULT:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = f"--{name.replace('_', '-')}"
            instead = "write --lease-setting duration_ms=MS" if name == "lease_duration_ms" else "leave it out"
            raise ConfigurationError(f"{option} is not known to --lease-profile {SOFA_LEASE_PROFILE}: {instead}")


def _sofa_lease(profile: str, settings: Sequence[str]) -> SofaLeaseConfig | None:
    if profile == SOFA_LEASE_PROFILE:
        _refuse_options_of_the_default()
        return parse_settings("--lease-setting", SofaLeaseConfig(), settings)
    if settings:
        raise ConfigurationError(f"--lease-setting {settings[0]!r} belongs to --lease-profile {SOFA_LEASE_PROFILE}")
    return None
