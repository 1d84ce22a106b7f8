"""Refusing nodes and slots that the cluster does not know, before an intent with a mistyped name is sent."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from controlplane.cli.common.invocation import Invocation
from controlplane.cli.common.reading import reading
from controlplane.cli.common.suggestions import did_you_mean
from controlplane.core.operations.slot_numbers import parse_slots
from controlplane.errors import ConfigurationError
from controlplane.inspection.names import known_nodes
from controlplane.inspection.states import read_state

_Command = TypeVar("_Command", bound=Callable[..., Any])
_EVEN_UNKNOWN: Final = "even_unknown"


def even_unknown_option(command: _Command) -> _Command:
    """The ``--even-unknown`` option of operations that name a node."""
    return click.option(
        "--even-unknown",
        is_flag=True,
        help="Allow a node that the cluster does not know yet; otherwise its name is refused as mistyped.",
    )(command)


def refuse_unknown_names(invocation: Invocation, arguments: Mapping[str, str]) -> None:
    """Refuse a node or slot that the cluster does not know. A cluster that no controller has led yet knows none.

    Raises:
        ConfigurationError: there is no such node or slot. The message lists similar names.
    """
    if "node" not in arguments and "slots" not in arguments:
        return
    with reading(invocation) as source:
        state = read_state(source)
    if not state.log_id:
        return
    if "slots" in arguments:
        try:
            parse_slots(arguments["slots"], len(state.slots.table))
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}. Nothing was sent") from error
    name, cluster = arguments.get("node"), invocation.cluster.name
    known = known_nodes(state)
    if name is not None and name not in known:
        offers_it = any(each.name == _EVEN_UNKNOWN for each in click.get_current_context().command.params)
        way_out = "; --even-unknown sends it all the same" if offers_it else ""
        raise ConfigurationError(
            f"cluster {cluster!r} knows no node {name!r}: {did_you_mean(name, known)} Nothing was sent{way_out}"
        )
