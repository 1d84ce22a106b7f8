"""The controller performs every action that its state machine may ask for."""

import threading

from controlplane.core.election.steps import ControllerAction
from controlplane.service.controller import Controller


def test_every_action_has_a_performer() -> None:
    """An action without one would end a controller only when it is asked for, which may be months later."""
    controller = object.__new__(Controller)  # the table needs none of its parts
    assert controller._performers(threading.Event()).keys() == set(ControllerAction)
