"""``controlplane leader``: the leader, the lease and the terms."""

from collections.abc import Sequence

import click

from controlplane.bootstrap import connections
from controlplane.cli.common.connecting import UnreachableError, reach
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, print_result, print_rows
from controlplane.cli.common.reading import reading, say_that_nobody_led
from controlplane.cli.intent_commands.operating import Manner, operate, operation_options
from controlplane.cli.intent_commands.sending import before_sending
from controlplane.config import SofaLeaseConfig
from controlplane.core.election.contenders import Contending
from controlplane.core.election.lock_record import LockReading
from controlplane.core.intents.intent import IntentKind
from controlplane.errors import ConfigurationError, PrerequisiteError, RetryableError
from controlplane.inspection import leaders, readers
from controlplane.inspection.past_states import refuse_lost_log
from controlplane.inspection.terms import terms_backwards
from controlplane.ports import LeaseHeld, LeaseMissing


@click.group()
def leader() -> None:
    """The controller that leads."""


@leader.command("show")
@format_option
@pass_invocation
def show(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Print the holder of the lease, and the last term that was opened in the log. Status 3 if no controller holds it.

    If Redis does not answer, the lease is unknown. The command then prints what is in the log, with status 3 as well.

    Contenders are the standbys that have asked for the lease recently. Observers never ask for it.

    Under lease profile 'sofa' the lease is SOFARegistry's lock, and every field of its record is printed, too.
    """
    lease, contenders, locks, silence = _look_at_lease(invocation)
    with reading(invocation) as source:
        opened = readers.last_term_opened(source)
    row = leaders.leader_row(lease, locks, opened)
    lock_rows = leaders.lock_rows(locks)
    contender_rows = leaders.contender_rows(contenders)
    if output_format is OutputFormat.JSON:
        row["contenders"] = [dict(each) for each in contender_rows]
        row["locks"] = [dict(each) for each in lock_rows]
    print_result(row, leaders.LEADER_FIELDS, output_format)
    if output_format is OutputFormat.TEXT:
        for rows, columns in (
            (contender_rows, leaders.CONTENDER_FIELDS),
            (lock_rows, leaders.LOCK_FIELDS),
        ):
            if rows:
                print_rows(rows, columns)
    if silence is not None:
        raise silence
    if row["lease_owner"] is not None:
        disagreement = leaders.disagreement(row)
        if disagreement:
            click.echo(disagreement, err=True)
        return ExitStatus.DONE
    click.echo(
        f"no controller leads cluster {invocation.cluster.name!r} now: start a controller with 'controlplane "
        "controller run'; if some run, their log lines say why none of them leads",
        err=True,
    )
    return ExitStatus.UNREACHABLE


def _look_at_lease(
    invocation: Invocation,
) -> tuple[LeaseHeld | LeaseMissing | None, Sequence[Contending], Sequence[LockReading], RetryableError | None]:
    """The lease, the contenders and the locks; or none of them, and the error of the lease store."""
    try:
        with connections.lease_store(invocation.cluster, invocation.redis_url) as store:
            lease = reach(invocation.redis_place, invocation.connect_timeout_s, store.read)
            contenders = store.contenders()
        with connections.lock_store(invocation.cluster, invocation.redis_url, SofaLeaseConfig()) as lock_store:
            return lease, contenders, lock_store.read_all(), None
    except RetryableError as silence:
        return None, (), (), silence


@leader.command("history")
@click.option("--last", "count", type=click.IntRange(min=1), default=20, metavar="N", help="How many terms.")
@format_option
@pass_invocation
def history(invocation: Invocation, *, count: int, output_format: OutputFormat) -> ExitStatus:
    """Print the last terms of the decision log, oldest first, with the leader, the times, and the reason for the end.

    Times are those of decisions. A leader without anything to decide may write none for hours, so the time between the
    last decision of a term and the first decision of the next is not the time without a leader. The reason for the end
    of a term is derived from the log. The present leader is shown by 'controlplane leader show'. Only a few records are
    read, however long the log is.
    """
    with reading(invocation) as source:
        found = [term for term, _ in zip(terms_backwards(source), range(count), strict=False)]
    if not found:
        say_that_nobody_led(invocation, "decisions")
    print_result(leaders.term_rows(found[::-1]), leaders.TERM_FIELDS, output_format)
    return ExitStatus.DONE


@leader.command("resign")
@click.option(
    "--controller",
    "name",
    metavar="NAME",
    help="Only if this controller leads.  [default: the one that opened the last term]",
)
@click.option("--force", is_flag=True, help="Send the request even if Redis does not answer.")
@operation_options
@pass_invocation
def resign(invocation: Invocation, *, name: str | None, force: bool, manner: Manner) -> ExitStatus:
    """Make the leader hand over: it gives its lease back at once and waits, so that another controller gets it first.

    Without Redis no controller can be elected, and the cluster would have no leader until Redis is back. If the address
    of Redis is known, Redis therefore has to answer first, unless --force is given.

    If no other controller stands for election, the same one leads again after a while, in a new term. Under lease
    profile 'sofa' a lock cannot be given back: there is no leader until it has expired, and then the same controller
    may lead again although others stand for election.
    """
    if not (force or manner.dry_run) and invocation.knows_redis:
        _require_lease_store(invocation)
    if name is None:
        with before_sending(), reading(invocation) as source:
            opened = readers.last_term_opened(source)
            if opened is None:
                refuse_lost_log(source)
        if opened is None:
            raise PrerequisiteError("no controller has led this cluster yet: there is no leader to resign")
        name = opened.decision.controller_id
    return operate(invocation, IntentKind.RESIGN_LEADER, {"controller": name}, manner)


def _require_lease_store(invocation: Invocation) -> None:
    """Refuse to leave a cluster without a leader that cannot elect another one.

    Raises:
        UnreachableError: the lease store does not answer.
        ConfigurationError: it refuses this client.
    """
    try:
        with connections.lease_store(invocation.cluster, invocation.redis_url) as store:
            reach(invocation.redis_place, invocation.connect_timeout_s, store.read)
    except UnreachableError as error:
        raise UnreachableError(
            f"{error}. Without Redis no controller can be elected, and none would lead until it is back: the "
            "leader was not asked to resign; --force asks all the same"
        ) from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}. The leader was not asked to resign; --force asks all the same") from error


@leader.command("force-refresh")
@click.argument("owner")
@click.option("--duration-ms", type=click.IntRange(min=1), required=True, help="The new duration of the lock.")
@click.option("--data-center", default=SofaLeaseConfig().data_center, show_default=True, help="Which lock.")
@click.option("--lock-name", default=SofaLeaseConfig().lock_name, show_default=True, help="Which lock.")
@pass_invocation
def force_refresh(
    invocation: Invocation, *, owner: str, duration_ms: int, data_center: str, lock_name: str
) -> ExitStatus:
    """Renew the lock of lease profile 'sofa' with another duration, if OWNER owns it.

    This is SOFARegistry's forceRefresh. With a short duration another controller can take over soon after the owner has
    died. Exits with 1 if there is no such lock, or another controller owns it.
    """
    lock = SofaLeaseConfig(data_center, lock_name)
    with connections.lock_store(invocation.cluster, invocation.redis_url, lock) as store:
        reach(invocation.redis_place, invocation.connect_timeout_s, store.read)
        if store.force_refresh(owner, duration_ms):
            click.echo(
                f"lock {lock_name!r} of data centre {data_center!r} was refreshed: {owner!r} owns it for another "
                f"{duration_ms:,} ms"
            )
            return ExitStatus.DONE
        record = store.read().record
    known = f"its owner is {record.owner!r}" if record else "there is none"
    click.echo(f"lock {lock_name!r} of data centre {data_center!r} was not refreshed: {known}", err=True)
    return ExitStatus.FAILED
