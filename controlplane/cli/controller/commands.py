"""``controlplane controller``: a process that stands for election, and leads while it has the lease."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import click
import structlog

from controlplane.bootstrap import connections
from controlplane.cli.common.connecting import reach
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.metrics_server import metrics_port_option, serve_metrics
from controlplane.cli.common.reading import reading
from controlplane.cli.common.settings_option import parse_settings
from controlplane.cli.common.stopping import stop_on_signals
from controlplane.cli.controller.lease_options import LeaseChoice, lease_options
from controlplane.config import DEFAULT_TICK_INTERVAL_MS, MAX_TICK_GAP_MS, ControllerConfig, SnapshotConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.rights import check_rights
from controlplane.core.log.state import State
from controlplane.core.slots.policies import check_slot_policy
from controlplane.core.values.canonical import CanonicalValue, to_canonical
from controlplane.errors import ConfigurationError, UnknownSlotPolicyError
from controlplane.garbage_collection import collect_seldom
from controlplane.inspection import states


@click.group()
def controller() -> None:
    """The controllers: one leads, the others are standbys."""


@controller.command("run")
@click.option(
    "--controller-id", help="The controller's id, unique in the cluster.  [default: host name and process id]"
)
@lease_options
@click.option(
    "--tick-interval-ms",
    default=DEFAULT_TICK_INTERVAL_MS,
    help=f"The interval of its ticks in the log, 10 to {MAX_TICK_GAP_MS}.",
)
@click.option("--follow-only", is_flag=True, help="Follow the log and never stand for election.")
@click.option(
    "--policy",
    "policy_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the cluster's policy, such as slot_count=1024; repeatable. Used only by the controller that "
    "creates the cluster: afterwards the policy is in the log.",
)
@click.option(
    "--snapshots",
    "snapshot_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="When this controller, while it leads, writes the next snapshot of the state: after_decisions=10000, "
    "after_bytes=67108864 or after_ms=3600000, whichever comes first; repeatable.",
)
@click.option(
    "--slot-policy-file",
    "slot_policy_files",
    envvar="CONTROLPLANE_CONTROLLER_RUN_SLOT_POLICY_FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE.py",
    help="A Python file with slot policies of your own in SLOT_POLICIES; repeatable. Every controller of a cluster "
    "that uses one needs it.",
)
@metrics_port_option
@pass_invocation
def run(  # noqa: PLR0913 - one parameter for each option
    invocation: Invocation,
    *,
    controller_id: str | None,
    lease: LeaseChoice,
    tick_interval_ms: int,
    follow_only: bool,
    policy_settings: tuple[str, ...],
    snapshot_settings: tuple[str, ...],
    slot_policy_files: tuple[Path, ...],
    metrics_port: int | None,
) -> None:
    """Run one controller until Ctrl-C or SIGTERM; a leader gives its lease back when it ends."""
    from controlplane.bootstrap.slot_policies import load_slot_policies

    policy = parse_settings("--policy", ClusterPolicy(), policy_settings)
    slot_policies = load_slot_policies(slot_policy_files)
    try:
        check_slot_policy(slot_policies, policy)
        check_rights(policy)
    except (ConfigurationError, UnknownSlotPolicyError) as error:
        raise ConfigurationError(f"--policy: {error}") from error
    config = ControllerConfig(
        cluster=invocation.cluster,
        kafka=invocation.kafka,
        redis_url=invocation.redis_url,
        controller_id=f"{socket.gethostname()}-{os.getpid()}" if controller_id is None else controller_id,
        lease=lease.lease,
        tick_interval_ms=tick_interval_ms,
        follow_only=follow_only,
        stop_when_lease_store_is_lost=lease.stop_when_store_is_lost,
        sofa_lease=lease.sofa_lease,
        snapshots=parse_settings("--snapshots", SnapshotConfig(), snapshot_settings),
    )
    from controlplane.bootstrap.controllers import run_controller

    with stop_on_signals() as stop:
        with connections.lease_store(invocation.cluster, config.redis_url) as store:
            reach(invocation.redis_place, invocation.connect_timeout_s, store.read)
            if not follow_only:
                # A missing right is an error here. In a take-over it would count as no answer.
                reach(invocation.redis_place, invocation.connect_timeout_s, store.read_log_id)
        with reading(invocation) as source:
            # Read only if there is something to compare.
            ruling = states.read_state(source) if policy_settings else State()
        if ruling.log_id:
            _warn_of_overruled(invocation.cluster.name, policy_settings, policy, ruling.cluster.policy)
        serve_metrics(metrics_port)
        collect_seldom()
        structlog.get_logger(__name__).info(
            "following the log; Ctrl-C ends", controller=config.controller_id, stands_for_election=not follow_only
        )
        run_controller(config, policy, slot_policies, stop)


def _warn_of_overruled(cluster: str, settings: Sequence[str], asked: ClusterPolicy, ruling: ClusterPolicy) -> None:
    """Print once which of the settings have no effect because the policy in the log differs."""
    names = list(dict.fromkeys(setting.partition("=")[0] for setting in settings))
    differing = [name for name in names if _field(ruling, name) != _field(asked, name)]
    if differing:
        here = " ".join(f"{name}={_shown(_field(ruling, name))}" for name in differing)
        wanted = " ".join(f"{name}={_shown(_field(asked, name))}" for name in differing)
        structlog.get_logger(__name__).warning(
            f"the log of cluster {cluster} has {here}; --policy counts only when a cluster is created: "
            f"use 'controlplane policy set {wanted}'"
        )


def _field(policy: ClusterPolicy, name: str) -> CanonicalValue:
    """The value of a field, or of an entry of one, by its dotted name; None if there is no such entry."""
    plain = to_canonical(policy)
    for part in name.split(".", 1):
        plain = plain.get(part) if isinstance(plain, dict) else None
    return plain


def _shown(value: CanonicalValue) -> str:
    return "" if value is None else str(value)
