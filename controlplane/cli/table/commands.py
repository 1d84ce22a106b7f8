"""``controlplane table``: the routing table, its status, and the operations on it."""

from collections.abc import Mapping
from pathlib import Path

import click

from controlplane.bootstrap.slot_policies import load_slot_policies
from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.holds import hold_lines
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import (
    OutputFormat,
    format_option,
    limit_option,
    print_first_rows,
    print_json,
    print_rows,
)
from controlplane.cli.common.reading import reading, say_that_nobody_led, table_for_key
from controlplane.cli.intent_commands.known_names import even_unknown_option
from controlplane.cli.intent_commands.operating import (
    Manner,
    operate,
    operation_options,
    show_effect,
    slot_policy_files_option,
)
from controlplane.cli.table.rendering import STATUS_COLUMNS, headline, standstill_lines, status_rows
from controlplane.cli.table.suppositions import GRAMMAR, parse_supposition
from controlplane.core.intents.intent import TRUE, IntentKind
from controlplane.core.log.state import State
from controlplane.errors import ConfigurationError, NoRouteError, UnroutableError
from controlplane.inspection import readers, routes, states, table_standing, tables
from controlplane.inspection.holds import read_holds
from controlplane.inspection.past_states import Measure, Moment, refuse_lost_log, replay, table_of
from controlplane.inspection.standstill import read_standstill
from controlplane.inspection.table_status import table_status


@click.group()
def table() -> None:
    """The routing table: the holders of each slot and the owner of each bundle."""


@table.command("show")
@click.option(
    "--by", "grouping", type=click.Choice(["slot", "node"]), default="slot", help="A row for each slot or node."
)
@click.option("--as-of-epoch", type=click.IntRange(min=1), metavar="N", help="The table at the end of this epoch.")
@click.option("--as-of-seq", type=click.IntRange(min=1), metavar="N", help="The table after this decision.")
@click.option(
    "--as-of-offset", type=click.IntRange(min=0), metavar="N", help="The table at this offset of the topic decisions."
)
@limit_option
@format_option
@pass_invocation
def show(
    invocation: Invocation,
    *,
    grouping: str,
    as_of_epoch: int | None,
    as_of_seq: int | None,
    as_of_offset: int | None,
    limit: int,
    output_format: OutputFormat,
) -> ExitStatus:
    """Print the routing table of the newest epoch, or of a moment of the past.

    A table of the past is rebuilt from the decision log, from the nearest snapshot before that moment or from the log's
    start. seq and term are those of the moment.
    """
    moment = _moment({Measure.EPOCH: as_of_epoch, Measure.SEQ: as_of_seq, Measure.OFFSET: as_of_offset})
    with reading(invocation) as source:
        if moment is None:
            current = readers.read_routing_table(source)
            state = State() if current is None else states.read_state(source)
            if current is not None and not state.log_id:
                refuse_lost_log(source)
        else:
            state = replay(source, moment).state
            current = table_of(state)
    if current is None:
        say_that_nobody_led(invocation, "routing table")
        return ExitStatus.FAILED
    by_node = grouping == "node"
    rows = tables.node_rows(current, state) if by_node else tables.slot_rows(current, state)
    if output_format is OutputFormat.JSON:
        print_json(tables.table_document(current, state, "nodes" if by_node else "slots", rows))
        return ExitStatus.DONE
    click.echo(headline(current, state))
    print_first_rows(rows, tables.NODE_FIELDS if by_node else tables.SLOT_FIELDS, limit)
    if not by_node:
        print_first_rows(tables.bundle_rows(current), tables.BUNDLE_FIELDS, limit)
    return ExitStatus.DONE


def _moment(asked: Mapping[Measure, int | None]) -> Moment | None:
    given = [Moment(measure, number) for measure, number in asked.items() if number is not None]
    if len(given) > 1:
        names = " and ".join(f"--as-of-{moment.measure.value}" for moment in given)
        raise ConfigurationError(f"{names}: name one moment only")
    return given[0] if given else None


@table.command("status")
@slot_policy_files_option
@limit_option
@format_option
@pass_invocation
def status(
    invocation: Invocation, *, slot_policy_files: tuple[Path, ...], limit: int, output_format: OutputFormat
) -> ExitStatus:
    """Print the status of the slots: balance, missing replicas, stability, counts for each node, and rows that wait.

    Balanced: the plan of the cluster's slot policy would move nothing. Replicas missing: how many replicas are missing
    to the policy's replica_count; the shortfalls give the reasons.

    Stable: every slot leader reported in its last heartbeat that it has its data, and every follower that it was in
    sync recently. Protected: so few nodes live that the slot policy leaves the table unchanged (only 'sofa' does).
    Evictions frozen: so many nodes fell silent at once that no node is fenced until most of them send heartbeats again,
    or an operator runs 'controlplane intents override-self-preservation'.
    """
    policies = load_slot_policies(slot_policy_files)
    with reading(invocation) as source:
        state = states.read_state(source)
        if not state.log_id:
            say_that_nobody_led(invocation, "routing table")
            return ExitStatus.FAILED
        tail = states.read_tail(source, state)
        read_at_ms = source.clock.wall_ms()  # before further readings, whose time is no standstill
        standstill = read_standstill(source, state, tail, read_at_ms)
        holds = read_holds(source, state)
    found = table_status(state, states.observations_of(tail), policies)
    if found.slot_policy not in policies:
        click.echo(
            f"slot policy {found.slot_policy!r} is not known here: name its file with --slot-policy-file to see "
            "whether it calls the table balanced",
            err=True,
        )
    if output_format is OutputFormat.JSON:
        print_json(table_standing.status_document(found, holds, standstill))
        return ExitStatus.DONE
    for line in (*standstill_lines(standstill), *hold_lines(holds)):
        click.echo(line)
    print_rows(status_rows(found), STATUS_COLUMNS)
    for line in table_standing.waiting_lines(found.waiting):
        click.echo(line)
    print_first_rows(table_standing.count_rows(found), table_standing.COUNT_FIELDS, limit)
    return ExitStatus.DONE


@table.command("route")
@click.argument("key")
@click.option("--namespace", metavar="NAME", help="Find the key's bundle in this namespace, instead of its slot.")
@format_option
@pass_invocation
def route(invocation: Invocation, *, key: str, namespace: str | None, output_format: OutputFormat) -> ExitStatus:
    """Print the slot or bundle of a KEY by the newest table, its owner, and the hash from which they follow.

    Use it to check a client in another language. Exits with 1 if no node serves the key now. A key is hashed as it is
    given: write the full name of a topic of Pulsar, persistent://TENANT/NAMESPACE/TOPIC.
    """
    current = table_for_key(invocation, key)
    if current is None:
        return ExitStatus.FAILED
    try:
        if namespace is None:
            found = routes.slot_route(current, key)
        else:
            found = routes.bundle_route(current, namespace, key)
            hint = routes.topic_hint(namespace, key)
            if hint:
                click.echo(hint, err=True)
    except (NoRouteError, UnroutableError) as error:
        click.echo(str(error), err=True)
        return ExitStatus.FAILED
    if output_format is OutputFormat.JSON:
        print_json(found)
    else:
        print_rows(routes.route_rows(found), STATUS_COLUMNS)
    problem = routes.why_unserved(current, found)
    if problem:
        click.echo(problem, err=True)
        return ExitStatus.FAILED
    return ExitStatus.DONE


class _SlotsCommand(click.Command):
    """A command whose first argument is slots: a negative number is not parsed as a mistyped option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as usual, with an error message of its own for a negative number."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name[1:2].isdigit():
                raise ConfigurationError(
                    f"slots {error.option_name!r}: slots are numbers from 0, as in 3,7-9"
                ) from None
            raise


@table.command("pin", cls=_SlotsCommand)
@click.argument("slots")
@click.argument("node")
@click.option("--leads", is_flag=True, help="The node has to lead the slots as well.")
@even_unknown_option
@operation_options
@pass_invocation
def pin(invocation: Invocation, *, slots: str, node: str, leads: bool, manner: Manner) -> ExitStatus:
    """Pin SLOTS (as in 3,7-9) to a node: it keeps a replica of each. A pin has no effect while the node is not live."""
    arguments = {"slots": slots, "node": node, **({"leads": TRUE} if leads else {})}
    return operate(invocation, IntentKind.PIN_SLOTS, arguments, manner)


@table.command("unpin", cls=_SlotsCommand)
@click.argument("slots")
@click.argument("node")
@even_unknown_option
@operation_options
@pass_invocation
def unpin(invocation: Invocation, *, slots: str, node: str, manner: Manner) -> ExitStatus:
    """Remove the pins of SLOTS (as in 3,7-9, or all) to a node."""
    return operate(invocation, IntentKind.UNPIN_SLOTS, {"slots": slots, "node": node}, manner)


@table.command("exclude", cls=_SlotsCommand)
@click.argument("slots")
@click.argument("node")
@even_unknown_option
@operation_options
@pass_invocation
def exclude(invocation: Invocation, *, slots: str, node: str, manner: Manner) -> ExitStatus:
    """Forbid a node to hold SLOTS (as in 3,7-9)."""
    return operate(invocation, IntentKind.EXCLUDE_SLOTS, {"slots": slots, "node": node}, manner)


@table.command("include", cls=_SlotsCommand)
@click.argument("slots")
@click.argument("node")
@even_unknown_option
@operation_options
@pass_invocation
def include(invocation: Invocation, *, slots: str, node: str, manner: Manner) -> ExitStatus:
    """End the exclusion of a node from SLOTS (as in 3,7-9, or all)."""
    return operate(invocation, IntentKind.INCLUDE_SLOTS, {"slots": slots, "node": node}, manner)


@table.command("refresh")
@operation_options
@pass_invocation
def refresh(invocation: Invocation, *, manner: Manner) -> ExitStatus:
    """Plan at once, and write every row of the table again under a new epoch."""
    return operate(invocation, IntentKind.REFRESH_TABLE, {}, manner)


@table.command("pause")
@operation_options
@pass_invocation
def pause(invocation: Invocation, *, manner: Manner) -> ExitStatus:
    """Move no slot until 'resume'; only dead nodes are taken out of the table, and surviving replicas lead."""
    return operate(invocation, IntentKind.PAUSE_RECONCILIATION, {}, manner)


@table.command("resume")
@operation_options
@pass_invocation
def resume(invocation: Invocation, *, manner: Manner) -> ExitStatus:
    """End a pause: slots are planned again at once."""
    return operate(invocation, IntentKind.RESUME_RECONCILIATION, {}, manner)


@table.command("plan", epilog=f"Forms of --with:\n\n{GRAMMAR}")
@click.option(
    "--with",
    "suppositions",
    multiple=True,
    metavar="TEXT",
    help="A supposed change, in one of the forms below; repeatable.",
)
@click.option("--rows", "row_count", type=click.IntRange(min=0), default=10, help="How many changed slots to print.")
@slot_policy_files_option
@format_option
@pass_invocation
def plan(
    invocation: Invocation,
    *,
    suppositions: tuple[str, ...],
    row_count: int,
    slot_policy_files: tuple[Path, ...],
    output_format: OutputFormat,
) -> ExitStatus:
    """Print how supposed changes would change the slot table. Sends nothing.

    Without --with it prints what a plan would change now. Several changes are supposed together, in one decision. Exits
    with 1 if one of them would be refused.
    """
    return show_effect(
        invocation,
        lambda state: [parse_supposition(text, state, invocation.principal) for text in suppositions],
        slot_policy_files,
        row_count,
        output_format,
    )
