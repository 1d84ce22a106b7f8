"""``controlplane topics``: the cluster's topics in Kafka, as declared in ``infra/kafka/topics.toml``."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from controlplane.cli.common.connecting import reach
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.core.values.canonical import to_canonical
from controlplane.kafka_rules.platforms import PLATFORMS

if TYPE_CHECKING:
    from controlplane.adapters.kafka_admin import TopicsReport

COLUMNS = ("topic", "outcome")


@click.group()
def topics() -> None:
    """The cluster's topics in Kafka."""


@topics.command("apply")
@click.option(
    "--least-copies",
    type=click.IntRange(1, 3),
    help="The fewest copies that a new topic may get, for a cluster with fewer brokers (default: 3). With one copy, "
    "the loss of one disk loses decisions.",
)
@format_option
@pass_invocation
def apply(invocation: Invocation, output_format: OutputFormat, least_copies: int | None) -> None:
    """Create missing topics and check all of them. Existing topics are never changed.

    A new topic gets three copies. If Kafka shows fewer brokers, nothing is created unless --least-copies allows it.
    """
    from controlplane.adapters.kafka_admin import apply_topics

    _run(invocation, output_format, partial(apply_topics, least_copies=least_copies))


@topics.command("verify")
@click.option(
    "--platform",
    type=click.Choice(sorted(PLATFORMS)),
    help="Who runs this Kafka: the answer then says of each setting that is wrong whether it can be changed there. "
    "Only the Kafka that answers is judged, whatever else is said of the platform.",
)
@format_option
@pass_invocation
def verify(invocation: Invocation, output_format: OutputFormat, platform: str | None) -> None:
    """Check that every topic exists and has the required settings. Changes nothing.

    Also checks Kafka's own topics, and advises on the settings of the brokers.
    """
    from controlplane.adapters.kafka_admin import verify_topics

    _run(invocation, output_format, partial(verify_topics, platform=None if platform is None else PLATFORMS[platform]))


def _run(invocation: Invocation, output_format: OutputFormat, act: Callable[..., "TopicsReport"]) -> None:
    from controlplane.bootstrap.topics import topic_specs

    kafka = invocation.kafka
    report = reach(
        invocation.kafka_place,
        invocation.connect_timeout_s,
        lambda: act(kafka.bootstrap_servers, invocation.cluster.name, topic_specs(), kafka.security),
    )
    if output_format is OutputFormat.JSON:
        print_json(to_canonical(report))
        return
    outcomes = dict.fromkeys(report.verified, "has the required settings") | dict.fromkeys(report.created, "created")
    print_rows([{"topic": topic, "outcome": outcome} for topic, outcome in sorted(outcomes.items())], COLUMNS)
    for sentence in report.advice:
        click.echo(f"advice: {sentence}", err=True)
