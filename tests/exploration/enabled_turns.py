"""Which turns a controller may take next, by what they depend on; the rest of the world stands still meanwhile."""

from collections.abc import Callable

from controlplane.core.election.backoff import BackOff
from controlplane.core.election.leading import LeadingAction
from controlplane.core.election.steps import ControllerAction
from tests.exploration.parts import Loop
from tests.exploration.turns import Turn

_OF_LEASE = frozenset({ControllerAction.CONFIRM_LEASE, ControllerAction.RAISE_FLOOR})
"""Actions that ask the lease store, and so does every back-off."""
_OF_THREAD = frozenset({ControllerAction.FOLLOW, ControllerAction.OBSERVE})
"""Actions that look at what the lease's thread says; all others ask Kafka."""


def _asks_lease_store(action: LeadingAction) -> bool:
    return isinstance(action, BackOff) or action in _OF_LEASE


def turns_of_thread(_: Loop) -> list[Callable[[Turn], None]]:
    """What the lease's thread may do next, whatever the loop is about."""
    return [Turn.wake]


def turns_with_lease_store(loop: Loop) -> list[Callable[[Turn], None]]:
    """What the loop may do next that depends on the lease's thread and its store."""
    if not loop.pending:
        return [Turn.end, Turn.vanish]
    return [Turn.go_on] if _asks_lease_store(loop.pending[0]) else []


def turns_with_thread(loop: Loop) -> list[Callable[[Turn], None]]:
    """What the loop may do next that depends on the lease's thread."""
    return [Turn.go_on] if loop.pending and loop.pending[0] in _OF_THREAD else []


def turns_with_kafka(loop: Loop) -> list[Callable[[Turn], None]]:
    """What the loop may do next that depends on Kafka."""
    if not loop.pending:
        return []
    action = loop.pending[0]
    return [Turn.shut_down] if _asks_lease_store(action) or action in _OF_THREAD else [Turn.shut_down, Turn.go_on]
