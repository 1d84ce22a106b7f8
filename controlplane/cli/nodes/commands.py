"""``controlplane nodes``: the members of a cluster."""

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.holds import hold_lines
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, limit_option, print_first_rows, print_json
from controlplane.cli.common.reading import reading, say_that_nobody_led
from controlplane.cli.intent_commands.known_names import even_unknown_option
from controlplane.cli.intent_commands.operating import Manner, operate, operation_options
from controlplane.cli.nodes.drain_watch import wait_until_drained
from controlplane.cli.nodes.rendering import headlines, passed_by_lines, shown_rows
from controlplane.config import HEARTBEATS
from controlplane.core.intents.intent import IntentKind
from controlplane.errors import ConfigurationError
from controlplane.inspection import members, readers, states
from controlplane.inspection.holds import read_holds
from controlplane.inspection.past_states import refuse_lost_log


@click.group()
def nodes() -> None:
    """The members of a cluster."""


@nodes.command("list")
@limit_option
@format_option
@pass_invocation
def list_nodes(invocation: Invocation, *, limit: int, output_format: OutputFormat) -> ExitStatus:
    """Print every member with what it owns, the epoch that it uses, and its last heartbeat.

    The lines above the table report frozen evictions and a paused reconciliation, with principal, time and reason, and
    how many heartbeats cannot be used, and why. A node is live if its last heartbeat is within the silence limit in
    log time, or by this machine's clock while log time stands still.
    """
    with reading(invocation) as source:
        table = readers.read_routing_table(source)
        if table is None:
            say_that_nobody_led(invocation, "routing table")
            return ExitStatus.FAILED
        living = {node_id for node_id, node in table.nodes.items() if node.status.lives}
        tail = readers.read_last_heartbeats(source, living, states.LOOK_BACK_MS)
        read_at_ms = source.clock.wall_ms()  # before further readings, whose time is no silence
        state = states.read_state(source)
        if not state.log_id:
            refuse_lost_log(source)
        holds = read_holds(source, state)
        found = members.liveness(table, tail, state, read_at_ms, states.LOOK_BACK_MS)
    rows = members.member_rows(table, tail, state, found.silent_ms)
    if output_format is OutputFormat.JSON:
        print_json([dict(row) for row in rows])
    else:
        passed_by = passed_by_lines(invocation.cluster.topic(HEARTBEATS), tail)
        for line in (*hold_lines(holds), *headlines(table, found), *passed_by):
            click.echo(line)
        print_first_rows(shown_rows(rows, found), members.MEMBER_FIELDS, limit)
    return ExitStatus.DONE


@nodes.command("drain")
@click.argument("name")
@click.option("--no-wait", is_flag=True, help="Do not wait until the node holds nothing.")
@click.option(
    "--drain-timeout",
    "drain_timeout_s",
    type=click.FloatRange(min=0),
    default=600.0,
    metavar="SECONDS",
    help="How long to wait until the node holds nothing.",
)
@even_unknown_option
@operation_options
@pass_invocation
def drain(invocation: Invocation, *, name: str, no_wait: bool, drain_timeout_s: float, manner: Manner) -> ExitStatus:
    """Move everything that a node holds to other nodes, and wait until it holds nothing. Its process keeps running.

    A drain ends when the node restarts. Exits with 1 if the node has to keep something.
    """
    status = operate(invocation, IntentKind.DRAIN_NODE, {"node": name}, manner)
    if status is not ExitStatus.DONE or no_wait or manner.dry_run or not manner.wait_s:
        return status
    return wait_until_drained(invocation, name, drain_timeout_s)


@nodes.command("undrain")
@click.argument("name")
@even_unknown_option
@operation_options
@pass_invocation
def undrain(invocation: Invocation, *, name: str, manner: Manner) -> ExitStatus:
    """End a drain. A node that is leaving on its own request cannot be undrained."""
    return operate(invocation, IntentKind.UNDRAIN_NODE, {"node": name}, manner)


@nodes.command("exclude")
@click.argument("name")
@even_unknown_option
@operation_options
@pass_invocation
def exclude(invocation: Invocation, *, name: str, manner: Manner) -> ExitStatus:
    """Assign nothing to a node, over all its restarts, until it is included again. It need not have joined yet."""
    return operate(invocation, IntentKind.EXCLUDE_NODE, {"node": name}, manner)


@nodes.command("include")
@click.argument("name")
@even_unknown_option
@operation_options
@pass_invocation
def include(invocation: Invocation, *, name: str, manner: Manner) -> ExitStatus:
    """End the exclusion of a node: it may be assigned slots and bundles again."""
    return operate(invocation, IntentKind.INCLUDE_NODE, {"node": name}, manner)


@nodes.command("set")
@click.argument("name")
@click.option("--weight", metavar="NUMBER", help="Its share of slots relative to other nodes.")
@click.option("--zone", help="Its failure domain; an empty text for none.")
@click.option("--reset", is_flag=True, help="Return to the weight and zone that the node joined with.")
@even_unknown_option
@operation_options
@pass_invocation
def set_node(
    invocation: Invocation, *, name: str, weight: str | None, zone: str | None, reset: bool, manner: Manner
) -> ExitStatus:
    """Set the weight or zone of a node, in place of its own values, over all its restarts until --reset."""
    settings = {} if weight is None else {"weight": weight}
    settings |= {} if zone is None else {"zone": zone}
    if reset == bool(settings):
        raise ConfigurationError("give --weight, --zone or both, or --reset alone")
    kind = IntentKind.RESET_NODE if reset else IntentKind.SET_NODE
    return operate(invocation, kind, {"node": name, **settings}, manner)
