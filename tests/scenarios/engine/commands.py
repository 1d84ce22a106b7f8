"""The commands of scenarios by name; each handler's docstring begins with its syntax."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from controlplane.errors import ConfigurationError
from tests.scenarios.engine import happenings, log_commands, views
from tests.scenarios.engine.call import Call, parse_call
from tests.scenarios.engine.cluster import Cluster
from tests.scenarios.engine.printing import decision_lines, refusal_line
from tests.scenarios.engine.script import ScenarioError

Handler: TypeAlias = Callable[[Cluster, Call], list[str]]
"""Carries a command out, and returns the lines that it prints itself."""

COMMANDS: Final[Mapping[str, Handler]] = {
    "policy": happenings.policy,
    "join": happenings.join,
    "rejoin": happenings.rejoin,
    "kill": happenings.kill,
    "beat": happenings.beat,
    "leave": happenings.leave,
    "left": happenings.left,
    "run": happenings.run,
    "no-controllers": happenings.no_controllers,
    "intent": happenings.intent,
    "take-over": happenings.take_over,
    "table": views.table,
    "nodes": views.nodes,
    "bundles": views.bundles,
    "decision": views.decision,
    "state": views.state,
    "status": views.status,
    "what-if": views.suppose,
    "apply": log_commands.apply_events,
    "verify": log_commands.verify,
    "snapshot": log_commands.snapshot,
}


def perform(cluster: Cluster, number: int, line: str) -> list[str]:
    """Carry out one command line.

    Returns:
        What it prints: the dead letters and decisions that it brought about, then its own output.

    Raises:
        ScenarioError: there is no such command, or it is written otherwise; the message names the line.
    """
    try:
        call = parse_call(line)
        printed = _handler(call)(cluster, call)
    except (ScenarioError, ConfigurationError, ValueError) as error:
        raise ScenarioError(f"line {number}, {line!r}: {error}") from error
    happened = [text for refusal in cluster.new_refusals() for text in refusal_line(refusal)]
    happened += [text for decision in cluster.new_decisions() for text in decision_lines(decision)]
    return [*happened, *printed]


def _handler(call: Call) -> Handler:
    if call.name not in COMMANDS:
        raise ScenarioError(f"{call.name!r} is no command; there are {', '.join(COMMANDS)}")
    return COMMANDS[call.name]
