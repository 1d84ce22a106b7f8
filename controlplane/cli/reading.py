"""Opening the log for a reading command: reached with patience, closed at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from controlplane.bootstrap import readers
from controlplane.cli.connecting import reach
from controlplane.cli.invocation import Invocation
from controlplane.config import DECISIONS
from controlplane.ports import LogReader


def say_that_nobody_led(invocation: Invocation, what: str) -> None:
    """Say on standard error why there is nothing to print, and what would change that.

    Args:
        invocation: which cluster.
        what: what it does not have, for example ``routing table``.
    """
    click.echo(
        f"cluster {invocation.cluster.name!r} has no {what} yet: no controller has led it; "
        "start one with 'controlplane controller run'",
        err=True,
    )


@contextmanager
def reading(invocation: Invocation) -> Iterator[LogReader]:
    """A reader of the cluster's log that has answered once.

    Raises:
        UnreachableError: Kafka did not answer within ``--connect-timeout``.
        ConfigurationError: no address is known, or the cluster has no topics.
    """
    reader = readers.open_reader(invocation.cluster, invocation.kafka)
    try:
        reach(invocation.kafka_place, invocation.connect_timeout_s, lambda: reader.partition_count(DECISIONS))
        yield reader
    finally:
        reader.close()
