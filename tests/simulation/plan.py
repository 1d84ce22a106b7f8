"""The plan of a run: faults and work, each with its time, determined by the seed.

Every item has a number and randomness of its own, so that a run can be repeated with some of them only, and what is
left does not become something else.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from controlplane.core.election.steps import ControllerPhase
from tests.simulation.broker_faults import WEIGHTS as BROKER_WEIGHTS
from tests.simulation.broker_faults import choose_broker_faults
from tests.simulation.fault_kinds import FaultKind
from tests.simulation.node_faults import WEIGHTS as NODE_WEIGHTS
from tests.simulation.node_faults import choose_node_faults
from tests.simulation.work_kinds import WorkKind

FIRST_MS: Final = 2_500
LAST_MS: Final = 11_500
"""When the first item happens at the earliest, and the last."""

_TAKING_OVER: Final = frozenset(ControllerPhase) - {ControllerPhase.FOLLOWING, ControllerPhase.LEADING}
_WAITS_SINCE_MS: Final = 8_000
"""From when on a fault waits for a step of a take-over at the latest, so that there is still one to come."""
_UNSEATING: Final = (
    FaultKind.CONTROLLER_KILLED,
    FaultKind.CONTROLLER_STOPPED,
    FaultKind.CONTROLLER_PAUSED_BEYOND_ITS_LEASE,
    FaultKind.CONTROLLER_WITHOUT_KAFKA,
    FaultKind.LEASE_STORE_EMPTIED,
    FaultKind.TRANSACTION_TIMED_OUT,
)
_SILENCING: Final = (FaultKind.ANSWER_LOST_AFTER_COMMIT, FaultKind.TRANSACTION_LEFT_HANGING, FaultKind.BROKER_FROZEN)
"""What makes a leader await an answer."""
_APART: Final = {"brokers": choose_broker_faults, "nodes": choose_node_faults}
"""Faults that come in addition, each sort by choices of its own."""
_WITH_FOREIGN_RECORDS: Final = ("4", "9")
"""Last digits of the seeds in whose runs others write into the cluster's topics; some of them are audited."""


@dataclass(frozen=True)
class Item:
    """One thing that happens.

    Attributes:
        number: its place in the plan.
        at_ms: when, in virtual time; with a step, from when on.
        kind: what.
        step: for a fault: it waits for a controller that is in this step of its loop, and hits that one.
        seed: of its own choices.
    """

    number: int
    at_ms: int
    kind: FaultKind | WorkKind
    step: ControllerPhase | None
    seed: str

    def __str__(self) -> str:
        """As a failing run prints it."""
        where = f" on, when a controller is {self.step.value}" if self.step else ""
        return f"{self.number}: from {self.at_ms} ms{where}: {self.kind.value}"


def choose_plan(seed: str, only: Collection[int] | None = None) -> tuple[Item, ...]:
    """The items of a seed, or some of them. All of them have at least six faults of at least four kinds."""
    choose = random.Random(f"plan of {seed}")
    apart = {FaultKind.FOREIGN_RECORDS, *BROKER_WEIGHTS, *NODE_WEIGHTS}
    kinds = choose.sample([kind for kind in FaultKind if kind not in apart], choose.randint(4, 8))
    again = [kind for kind in kinds if kind is not FaultKind.PARTITIONS_ADDED]  # it happens twice by itself
    faults = kinds + choose.choices(again, k=max(choose.randint(1, 4), 6 - len(kinds)))
    work = choose.choices(list(WorkKind), k=choose.randint(10, 18))
    items: list[Item] = []

    def add(kind: FaultKind | WorkKind, at_ms: int, step: ControllerPhase | None = None) -> None:
        items.append(Item(len(items), at_ms, kind, step, f"{seed}/{len(items)}"))

    for fault in faults:
        step = choose.choice(list(ControllerPhase)) if choose.random() < 0.6 else None
        add(fault, choose.randint(FIRST_MS, _WAITS_SINCE_MS if step in _TAKING_OVER else LAST_MS), step)
    for task in work:
        add(task, choose.randint(FIRST_MS, LAST_MS))
    if any(item.step in _TAKING_OVER for item in items):
        add(choose.choice(_UNSEATING), choose.randint(_WAITS_SINCE_MS, LAST_MS))
    if any(item.step is ControllerPhase.AWAITING_ANSWER for item in items):
        add(choose.choice(_SILENCING), choose.randint(FIRST_MS, LAST_MS))
    # Behind all others and by choices of their own, so that they change nothing of what else happens.
    for apart_of, choose_faults in _APART.items():
        choose = random.Random(f"faults of {apart_of} in {seed}")
        for fault in choose_faults(choose):
            step = choose.choice(list(ControllerPhase)) if choose.random() < 0.6 else None
            add(fault, choose.randint(FIRST_MS, _WAITS_SINCE_MS if step in _TAKING_OVER else LAST_MS), step)
    if seed.endswith(_WITH_FOREIGN_RECORDS):
        choose = random.Random(f"foreign records of {seed}")
        for _ in range(choose.randint(1, 4)):
            step = choose.choice(list(ControllerPhase)) if choose.random() < 0.6 else None
            add(FaultKind.FOREIGN_RECORDS, choose.randint(FIRST_MS, LAST_MS), step)
    return tuple(item for item in items if only is None or item.number in only)
