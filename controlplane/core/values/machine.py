"""The interface of state machines to their drivers.

A state machine (election, node session) performs no action and reads no clock. Its driver passes it each event with the
time, performs the actions that it returns, and wakes it at the time that it returns. Wake-ups may come early, late or
repeatedly. Actions are comparable values, so that tests compare whole outputs. The model is Dicer's
``StateMachineDriver``. Unlike there, an exception of the machine stops the driver.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

Action = TypeVar("Action")


@dataclass(frozen=True, slots=True)
class Output(Generic[Action]):
    """The output of a state machine for one event.

    Attributes:
        next_wake_at_ms: monotonic time by which the driver has to wake the machine; None if only at the next event.
        actions: the actions to perform, in this order.
    """

    next_wake_at_ms: int | None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Woke:
    """Time has passed. The event may come early, late or repeatedly."""
