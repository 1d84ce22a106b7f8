"""``controlplane controller``: a process that stands for election and leads."""

import os
import socket
from pathlib import Path

import click
import structlog

from controlplane.cli.connecting import reach
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.metrics_server import metrics_port_option, serve_metrics
from controlplane.cli.reading import reading
from controlplane.cli.settings_option import parse_settings
from controlplane.cli.stopping import stop_on_signals
from controlplane.config import ControllerConfig, LeaseConfig
from controlplane.core.policy import Policy
from controlplane.core.slot_policies import check_slot_policy
from controlplane.errors import ConfigurationError, UnknownSlotPolicyError


@click.group()
def controller() -> None:
    """The controllers: one leads, the others stand by."""


@controller.command("run")
@click.option("--controller-id", help="Its name, unique in the cluster.  [default: host name and process id]")
@click.option("--lease-duration-ms", default=LeaseConfig().duration_ms, help="Silence after which others take over.")
@click.option("--tick-interval-ms", default=100, help="How often it marks the time in the log, 10 to 200.")
@click.option("--follow-only", is_flag=True, help="Follow the log and never stand for election.")
@click.option(
    "--stop-when-lease-store-is-lost", is_flag=True, help="Give up leading when Redis is lost; the default leads on."
)
@click.option(
    "--policy",
    "policy_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the cluster's policy, such as slot_count=1024; repeatable. Used only by the controller that "
    "creates the cluster: afterwards the policy is in the log.",
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
    lease_duration_ms: int,
    tick_interval_ms: int,
    follow_only: bool,
    stop_when_lease_store_is_lost: bool,
    policy_settings: tuple[str, ...],
    slot_policy_files: tuple[Path, ...],
    metrics_port: int | None,
) -> None:
    """Run one controller until Ctrl-C or SIGTERM; a leader gives its lease back when it ends."""
    from controlplane.bootstrap.slot_policies import load_slot_policies

    policy = parse_settings("--policy", Policy(), policy_settings)
    slot_policies = load_slot_policies(slot_policy_files)
    try:
        check_slot_policy(slot_policies, policy)
    except UnknownSlotPolicyError as error:
        raise ConfigurationError(f"--policy: {error}") from error
    config = ControllerConfig(
        cluster=invocation.cluster,
        kafka=invocation.kafka,
        redis_url=invocation.redis_url,
        controller_id=f"{socket.gethostname()}-{os.getpid()}" if controller_id is None else controller_id,
        lease=LeaseConfig(duration_ms=lease_duration_ms),
        tick_interval_ms=tick_interval_ms,
        follow_only=follow_only,
        stop_when_lease_store_is_lost=stop_when_lease_store_is_lost,
    )
    from controlplane.bootstrap import readers
    from controlplane.bootstrap.controllers import run_controller

    with stop_on_signals() as stop:
        with readers.lease_store(invocation.cluster, config.redis_url) as store:
            reach(invocation.redis_place, invocation.connect_timeout_s, store.read)
        with reading(invocation):
            pass
        serve_metrics(metrics_port)
        structlog.get_logger(__name__).info(
            "following the log; Ctrl-C ends", controller=config.controller_id, stands_for_election=not follow_only
        )
        run_controller(config, policy, slot_policies, stop)
