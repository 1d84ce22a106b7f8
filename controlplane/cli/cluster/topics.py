"""``controlplane topics``: the cluster's topics in Kafka, as declared in ``infra/kafka/topics.toml``."""

import click

from controlplane.cli.common.connecting import reach
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_json, print_rows
from controlplane.core.values.canonical import to_canonical

COLUMNS = ("topic", "outcome")


@click.group()
def topics() -> None:
    """The cluster's topics in Kafka."""


@topics.command("apply")
@format_option
@pass_invocation
def apply(invocation: Invocation, output_format: OutputFormat) -> None:
    """Create missing topics and check all of them. Existing topics are never changed."""
    _run(invocation, output_format, create=True)


@topics.command("verify")
@format_option
@pass_invocation
def verify(invocation: Invocation, output_format: OutputFormat) -> None:
    """Check that every topic exists and has the required settings. Changes nothing."""
    _run(invocation, output_format, create=False)


def _run(invocation: Invocation, output_format: OutputFormat, *, create: bool) -> None:
    from controlplane.adapters.kafka_admin import apply_topics, verify_topics
    from controlplane.bootstrap.topics import topic_specs

    kafka = invocation.kafka
    act = apply_topics if create else verify_topics
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
