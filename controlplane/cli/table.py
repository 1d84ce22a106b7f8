"""``controlplane table``: the routing table as it stands, and what operators order for it."""

from pathlib import Path

import click

from controlplane.bootstrap import readers, states
from controlplane.cli import table_status_view, table_view
from controlplane.cli.failures import ExitStatus
from controlplane.cli.invocation import Invocation, pass_invocation
from controlplane.cli.nodes import LOOK_BACK_MS
from controlplane.cli.operating import (
    Manner,
    operate,
    operation_options,
    show_effect,
    slot_policy_files_option,
)
from controlplane.cli.output import OutputFormat, format_option, print_json, print_rows
from controlplane.cli.reading import reading, say_that_nobody_led
from controlplane.cli.suppositions import GRAMMAR, parse_supposition
from controlplane.codec.framing import framing_with
from controlplane.core.records import TRUE, IntentKind
from controlplane.core.table_status import table_status


@click.group()
def table() -> None:
    """The routing table: who owns which slot and bundle."""


@table.command("show")
@click.option(
    "--by", "grouping", type=click.Choice(["slot", "node"]), default="slot", help="A row for each slot or node."
)
@format_option
@pass_invocation
def show(invocation: Invocation, grouping: str, output_format: OutputFormat) -> ExitStatus:
    """Print the newest epoch of the routing table."""
    with reading(invocation) as reader:
        current = readers.read_routing_table(reader)
        if current is None:
            say_that_nobody_led(invocation, "routing table")
            return ExitStatus.FAILED
        state = states.read_state(reader)
    by_node = grouping == "node"
    rows = table_view.node_rows(current, state) if by_node else table_view.slot_rows(current, state)
    if output_format is OutputFormat.JSON:
        print_json(table_view.table_document(current, state, "nodes" if by_node else "slots", rows))
        return ExitStatus.DONE
    click.echo(table_view.headline(current, state))
    print_rows(rows, table_view.NODE_COLUMNS if by_node else table_view.SLOT_COLUMNS)
    if not by_node:
        print_rows(table_view.bundle_rows(current), table_view.BUNDLE_COLUMNS)
    return ExitStatus.DONE


@table.command("status")
@format_option
@pass_invocation
def status(invocation: Invocation, output_format: OutputFormat) -> ExitStatus:
    """Say how the slots stand: balanced, in sync, protected, how many each node leads and follows, and what waits.

    Balanced is what the cluster's slot policy calls so. In sync is what the nodes' last heartbeats say.
    """
    with reading(invocation) as reader:
        state = readers.read_state(reader)
        if not state.log_id:
            say_that_nobody_led(invocation, "routing table")
            return ExitStatus.FAILED
        living = {node_id for node_id, node in state.nodes.items() if node.lives}
        framing = framing_with(invocation.kafka.schema_ids)
        tail = readers.read_last_heartbeats(reader, living, LOOK_BACK_MS, framing=framing)
    found = table_status(state, table_status_view.observations_of(tail))
    if output_format is OutputFormat.JSON:
        print_json(table_status_view.status_document(found))
        return ExitStatus.DONE
    print_rows(table_status_view.status_rows(found), table_status_view.STATUS_COLUMNS)
    if found.waiting:
        print_rows(table_status_view.waiting_rows(found), table_status_view.WAITING_COLUMNS)
    print_rows(table_status_view.count_rows(found), table_status_view.COUNT_COLUMNS)
    return ExitStatus.DONE


@table.command("pin")
@click.argument("slots")
@click.argument("node")
@click.option("--leads", is_flag=True, help="The node also has to lead them.")
@operation_options
@pass_invocation
def pin(invocation: Invocation, *, slots: str, node: str, leads: bool, manner: Manner) -> ExitStatus:
    """Keep a replica of each of the SLOTS (as in 3,7-9) on a node. While the node is dead its pins sleep."""
    arguments = {"slots": slots, "node": node, **({"leads": TRUE} if leads else {})}
    return operate(invocation, IntentKind.PIN_SLOTS, arguments, manner)


@table.command("unpin")
@click.argument("slots")
@click.argument("node")
@operation_options
@pass_invocation
def unpin(invocation: Invocation, *, slots: str, node: str, manner: Manner) -> ExitStatus:
    """Take the pins of SLOTS (as in 3,7-9, or all) to a node back."""
    return operate(invocation, IntentKind.UNPIN_SLOTS, {"slots": slots, "node": node}, manner)


@table.command("exclude")
@click.argument("slots")
@click.argument("node")
@operation_options
@pass_invocation
def exclude(invocation: Invocation, *, slots: str, node: str, manner: Manner) -> ExitStatus:
    """Let a node hold none of these SLOTS (as in 3,7-9)."""
    return operate(invocation, IntentKind.EXCLUDE_SLOTS, {"slots": slots, "node": node}, manner)


@table.command("include")
@click.argument("slots")
@click.argument("node")
@operation_options
@pass_invocation
def include(invocation: Invocation, *, slots: str, node: str, manner: Manner) -> ExitStatus:
    """Take the exclusion of a node from SLOTS (as in 3,7-9, or all) back."""
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
    """Move no slot until 'resume'; only the dead are taken out of the table, and survivors lead."""
    return operate(invocation, IntentKind.PAUSE_RECONCILIATION, {}, manner)


@table.command("resume")
@operation_options
@pass_invocation
def resume(invocation: Invocation, *, manner: Manner) -> ExitStatus:
    """Take a pause back: slots are planned again, at once."""
    return operate(invocation, IntentKind.RESUME_RECONCILIATION, {}, manner)


@table.command("plan", epilog=f"What may be supposed:\n\n{GRAMMAR}")
@click.option(
    "--with", "suppositions", multiple=True, metavar="TEXT", help="What is supposed to happen; repeatable. See below."
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
    """Show what would happen to the slot table, and touch nothing.

    Without --with: what a plan would change now. Several suppositions are taken up together, in one decision. Exits
    with 1 if some of it could not happen.
    """
    return show_effect(
        invocation,
        lambda state: [parse_supposition(text, state) for text in suppositions],
        slot_policy_files,
        row_count,
        output_format,
    )
