"""``controlplane bundles``: who owns the bundles, and orders to move or split them."""

import click

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation, pass_invocation
from controlplane.cli.common.output import OutputFormat, format_option, limit_option, print_first_rows, print_json
from controlplane.cli.common.reading import reading, say_that_nobody_led
from controlplane.cli.common.suggestions import did_you_mean
from controlplane.cli.intent_commands.operating import Manner, operation_options
from controlplane.cli.intent_commands.order_watch import order_bundles, until_done_option
from controlplane.core.bundles.orders import BY_NUMBER, BY_POSITIONS
from controlplane.core.intents.intent import IntentKind
from controlplane.core.operations.bundle_operations import LEAST_PARTS, MOST_PARTS, SPLIT_ALGORITHMS
from controlplane.errors import ConfigurationError
from controlplane.inspection import states
from controlplane.inspection.bundles import BUNDLE_STATE_FIELDS, bundle_state_rows
from controlplane.inspection.names import known_nodes


@click.group()
def bundles() -> None:
    """Bundles: the state of their ownership, and orders to move or split them.

    BUNDLES are bundle ids with commas between them, as in kv/0x00000000_0x40000000. The name of a namespace stands for
    all of its bundles.
    """


@bundles.command("list")
@click.option("--namespace", metavar="NAME", help="Only the bundles of this namespace.")
@click.option("--node", metavar="NAME", help="Only the bundles that this node owns, or is to own next.")
@limit_option
@format_option
@pass_invocation
def list_bundles(
    invocation: Invocation, *, namespace: str | None, node: str | None, limit: int, output_format: OutputFormat
) -> ExitStatus:
    """Print the state of the bundles' ownership, and the orders that stand for them.

    Owned: the owner serves the bundle, with the owner epoch as its token. Releasing: the owner stops serving it.
    Assigning: the next owner opens it, and no node serves it. Splitting: the owner serves it until the parts are there.
    Free: it has no owner. The state epoch is that of the last change. Addresses are in 'namespaces show'.

    Of the orders, transfer, unload and split are those of an operator. Relieve takes a bundle from a node that drains
    or is excluded, and end is the part of a bundle in the deletion of its namespace.
    """
    with reading(invocation) as source:
        state = states.read_state(source)
    if not state.log_id:
        say_that_nobody_led(invocation, "bundles")
    else:
        for what, name, known in (
            ("namespace", namespace, state.bundles.namespaces),
            ("node", node, known_nodes(state)),
        ):
            if name is not None and name not in known:
                cluster, similar = invocation.cluster.name, did_you_mean(name, known)
                click.echo(f"there is no {what} {name!r} in cluster {cluster!r}: {similar}", err=True)
                return ExitStatus.FAILED
    rows = bundle_state_rows(state, namespace, node)
    if output_format is OutputFormat.JSON:
        print_json(list(rows))
    else:
        print_first_rows(rows, BUNDLE_STATE_FIELDS, limit)
    return ExitStatus.DONE


@bundles.command("transfer")
@click.argument("bundles")
@click.argument("node")
@until_done_option
@operation_options
@pass_invocation
def transfer(
    invocation: Invocation, *, bundles: str, node: str, until_done_s: float | None, manner: Manner
) -> ExitStatus:
    """Order BUNDLES to go to NODE. A bundle without an owner is assigned to it."""
    arguments = {"bundles": bundles, "node": node}
    return order_bundles(invocation, IntentKind.TRANSFER_BUNDLES, arguments, manner, until_done_s)


@bundles.command("unload")
@click.argument("bundles")
@until_done_option
@operation_options
@pass_invocation
def unload(invocation: Invocation, *, bundles: str, until_done_s: float | None, manner: Manner) -> ExitStatus:
    """Order BUNDLES to be released by their owners, and to go to the nodes that placement chooses then."""
    return order_bundles(invocation, IntentKind.UNLOAD_BUNDLES, {"bundles": bundles}, manner, until_done_s)


@bundles.command("split")
@click.argument("bundles")
@click.option(
    "--into", "parts", type=click.IntRange(LEAST_PARTS, MOST_PARTS), metavar="N", help="Into N parts of equal width."
)
@click.option(
    "--at", "positions", metavar="HASH,...", help="At hashes, as in 0x40000000,0x80000000: a part begins at each."
)
@click.option(
    "--by",
    "algorithm",
    type=click.Choice(SPLIT_ALGORITHMS),
    help="By an algorithm that the owner runs over its topics.",
)
@until_done_option
@operation_options
@pass_invocation
def split(
    invocation: Invocation,
    *,
    bundles: str,
    parts: int | None,
    positions: str | None,
    algorithm: str | None,
    until_done_s: float | None,
    manner: Manner,
) -> ExitStatus:
    """Order BUNDLES to be split, by default each into two parts of equal width. The parts stay with the owner."""
    given = (
        (parts is not None, BY_NUMBER, str(parts)),
        (positions is not None, BY_POSITIONS, positions or ""),
        (algorithm is not None, algorithm or "", ""),
    )
    chosen = [(by, numbers) for is_given, by, numbers in given if is_given]
    if len(chosen) > 1:
        raise ConfigurationError("give one of --into, --at and --by")
    if positions is not None and not all(each.startswith("0x") for each in positions.split(",")):
        # A hash without it is taken for a decimal number, and no split can be taken back.
        raise ConfigurationError(f"--at {positions}: write each hash as in 0x40000000")
    ((by, numbers),) = chosen or [(BY_NUMBER, str(LEAST_PARTS))]
    arguments = {"bundles": bundles, "by": by, **({"numbers": numbers} if numbers else {})}
    return order_bundles(invocation, IntentKind.SPLIT_BUNDLES, arguments, manner, until_done_s)
