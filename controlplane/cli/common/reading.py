"""Opening the log for a reading command, with retries until a timeout, and closing it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import click

from controlplane.bootstrap import connections
from controlplane.cli.common.connecting import reach, telling
from controlplane.cli.common.invocation import Invocation
from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.routing.replica import RoutingTable
from controlplane.errors import ConfigurationError, LogUnavailableError
from controlplane.inspection import readers
from controlplane.inspection.past_states import refuse_lost_log
from controlplane.inspection.source import LogSource


def say_that_nobody_led(invocation: Invocation, what: str) -> None:
    """Print on standard error that the cluster has nothing to print yet, and how to start a controller.

    Args:
        invocation: the cluster.
        what: the missing thing, for example ``routing table``.

    Raises:
        LogContinuityError: a controller has led the cluster: the log was deleted or recreated.
    """
    with reading(invocation) as source:
        refuse_lost_log(source)
    click.echo(
        f"cluster {invocation.cluster.name!r} has no {what} yet: no controller has led it; "
        "start one with 'controlplane controller run', or wait some seconds if one was started just now",
        err=True,
    )


def table_for_key(invocation: Invocation, key: str) -> RoutingTable | None:
    """The newest table, to route a key by it; None, with a message on standard error, if the cluster has none yet.

    Args:
        invocation: the cluster.
        key: the key as it was given, which is checked before Kafka is asked.

    Raises:
        ConfigurationError: the key is no UTF-8.
    """
    try:
        key.encode()
    except UnicodeEncodeError:
        raise ConfigurationError(f"the key {key!r} is no UTF-8, and keys are text: give it in UTF-8") from None
    return current_table(invocation, first_topic=ROUTING_TABLE)


def current_table(invocation: Invocation, first_topic: str = DECISIONS) -> RoutingTable | None:
    """The newest table; None, with a message on standard error, if the cluster has none yet.

    Args:
        invocation: the cluster.
        first_topic: as for :func:`reading`.
    """
    with reading(invocation, first_topic=first_topic) as source:
        current = readers.read_routing_table(source)
    if current is None:
        say_that_nobody_led(invocation, "routing table")
    return current


@contextmanager
def reading(
    invocation: Invocation, work: str | Callable[[], str] = "reading the log", first_topic: str = DECISIONS
) -> Iterator[LogSource]:
    """A reader of the cluster's log for which Kafka has answered once.

    Args:
        invocation: the cluster.
        work: the progress message, printed on standard error every two seconds inside the block; empty for none. A
            function gives the message of the moment.
        first_topic: a topic that has to exist and that this user may read.

    Raises:
        UnreachableError: Kafka did not answer within ``--connect-timeout``.
        LogUnavailableError: Kafka did not answer inside the block; the message begins with its address.
        ConfigurationError: no address is known.
        PrerequisiteError: the cluster has no topics.
    """
    source = connections.open_source(invocation.cluster, invocation.kafka)
    try:
        reach(invocation.kafka_place, invocation.connect_timeout_s, lambda: source.reader.partition_count(first_topic))

        def saying(elapsed_s: float) -> str:
            return f"{work() if callable(work) else work} of cluster {invocation.cluster.name} ... ({elapsed_s:.0f} s)"

        with telling(saying) if work else nullcontext():
            yield source
    except LogUnavailableError as error:
        raise LogUnavailableError(f"{invocation.kafka_place}: {error}") from error
    finally:
        source.close()
