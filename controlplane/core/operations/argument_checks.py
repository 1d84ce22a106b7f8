"""Checks of an intent's arguments that do not depend on the state of a cluster.

The sender checks the arguments before it sends anything, so that an impossible intent does not reach the log. The
leader checks them again. Checks that depend on the state belong to the operation itself.
"""

from collections.abc import Mapping

from controlplane.core.intents.intent import REASON, IntentKind
from controlplane.core.operations.operation import Operation
from controlplane.core.operations.registry import OPERATIONS
from controlplane.errors import ConfigurationError


def check_arguments(kind: IntentKind, arguments: Mapping[str, str]) -> None:
    """Check that some cluster could carry out an intent with these arguments.

    Raises:
        ConfigurationError: an argument is missing, unknown, empty, malformed, or out of range.
    """
    operation = OPERATIONS[kind]
    _check_values(operation, arguments)
    problem = _names_problem(operation, arguments)
    if problem is not None:
        raise ConfigurationError(problem)
    if operation.check_settings is not None:
        named = {argument.name for argument in operation.arguments}
        operation.check_settings({name: text for name, text in arguments.items() if name not in {*named, REASON}})


def argument_problem(operation: Operation, arguments: Mapping[str, str]) -> str | None:
    """Why no cluster could carry out an operation with these arguments; None if one could.

    Arguments with free names, such as fields of the policy, are left to the operation, which checks them against the
    policy that they change.
    """
    problem = _names_problem(operation, arguments)
    if problem is not None:
        return problem
    try:
        _check_values(operation, arguments)
    except ConfigurationError as error:
        return str(error)
    return None


def _names_problem(operation: Operation, arguments: Mapping[str, str]) -> str | None:
    missing = [each.name for each in operation.arguments if each.required and not arguments.get(each.name)]
    if missing:
        return f"{operation.kind.value} needs {', '.join(missing)}"
    if operation.check_settings is not None:
        return None
    unknown = arguments.keys() - {REASON, *(each.name for each in operation.arguments)}
    return f"{operation.kind.value} does not know {', '.join(sorted(unknown))}" if unknown else None


def _check_values(operation: Operation, arguments: Mapping[str, str]) -> None:
    for argument in operation.arguments:
        if argument.name in arguments:
            argument.check(arguments[argument.name])
