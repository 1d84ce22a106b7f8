"""What a world knows of its processes: the controllers that run, services without data, threads that failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.node import NodeAgent, NodeCallbacks, SlotGained
from controlplane.ports import Signal
from controlplane.service.controller import Controller


@dataclass
class RunningController:
    """A controller process, its work and how to end it in good order."""

    name: str
    controller: Controller
    stop: Signal


class Failure(NamedTuple):
    """The error that ended a thread of a process."""

    process: str
    thread: str
    error: BaseException

    def __str__(self) -> str:
        """In a sentence."""
        return f"{self.process}'s thread {self.thread} ended: {self.error!r}"


class ReadyAtOnce(NodeCallbacks):
    """A service without data."""

    agent: NodeAgent

    def on_slots_gained(self, gained: Sequence[SlotGained]) -> None:
        """Serve them."""
        for slot in gained:
            self.agent.slot_ready(slot.slot_id, slot.epoch)
