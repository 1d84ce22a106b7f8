"""What all passive machines share: they are woken, and answer when to do so next and what their driver has to do.

Machines (election, node session) never act and never look at a clock: they are told what happened and what time it is.
Wake-ups may come early, late or repeatedly. Actions are comparable values, so that tests compare whole outputs. The
model is Dicer's ``StateMachineDriver``; unlike there, an exception of a machine stops its driver.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

Action = TypeVar("Action")


@dataclass(frozen=True, slots=True)
class Output(Generic[Action]):
    """The answer to one event.

    Attributes:
        next_wake_at_ms: the monotonic time at which the machine wants to be called at the latest; None means only when
            something happens.
        actions: to be performed in this order.
    """

    next_wake_at_ms: int | None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Woke:
    """Time has passed; may come early, late or repeatedly."""
