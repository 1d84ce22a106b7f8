"""Samples of the subject ``slots``: its events, the certificate of a plan and the rows of slots."""

from controlplane.core.slots.certificate import Certificate, LoadStage, ReadyHeirs
from controlplane.core.slots.events import (
    MemoryEntry,
    PlanDropped,
    PlanMade,
    PolicyRemembered,
    ReconciliationPaused,
    ReconciliationResumed,
    ReplicasLeft,
    SlotHandoffsChanged,
    SlotHandoffsEnded,
    SlotsAssigned,
    SlotsExcluded,
    SlotsIncluded,
    SlotsPinned,
    SlotsSplit,
    SlotsUnpinned,
)
from controlplane.core.slots.handoffs import SlotHandoff
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.slots.plans import Departure
from controlplane.core.slots.table import Slot
from controlplane.core.values.identifiers import Epoch, Seq, SlotId
from tests.golden.samples.sample import STARTED_MS, Sample

_SLOTS = tuple(Slot(number, f"node-{number % 3}", (f"node-{(number + 1) % 3}",), Epoch(7)) for number in range(40))

OPERATOR_EVENTS = (
    SlotsPinned((Pin(3, "node-1", leads=True), Pin(4, "node-1"))),
    SlotsUnpinned((Pin(4, "node-1"),)),
    SlotsExcluded((Exclusion(5, "node-1"), Exclusion(6, "node-1"))),
    SlotsIncluded((Exclusion(6, "node-1"),)),
    ReconciliationPaused("a disk is being replaced"),
    ReconciliationResumed(""),
)
TABLE_EVENTS = (
    SlotsAssigned((*_SLOTS, Slot(40, None, (), Epoch(4)))),
    PolicyRemembered((MemoryEntry("slot/17", "[41]"), MemoryEntry("slot/18", None), MemoryEntry("table", "42"))),
    SlotsSplit((Slot(41, "node-1", ("node-2",), Epoch(4)), Slot(42, None, (), Epoch(4)))),
    PlanDropped(Seq(5), "a new plan takes its place"),
    PlanMade(Seq(7), STARTED_MS + 5, STARTED_MS + 9, (Slot(43, "node-2", ("node-1",), Epoch(4)),)),
    ReplicasLeft(STARTED_MS + 5, (Departure(44, "node-2", STARTED_MS, STARTED_MS + 5),)),
)

HANDOFF_EVENTS = (
    SlotHandoffsChanged(
        (
            SlotHandoff(SlotId(45), "node-2", Epoch(7), STARTED_MS + 5),
            SlotHandoff(SlotId(46), "node-3", Epoch(6), STARTED_MS, Epoch(7)),
        )
    ),
    SlotHandoffsEnded((SlotId(47), SlotId(48))),
    # No leader writes these two: the state has handoffs apart. A reader of the log has to be able to read them.
    SlotsAssigned((Slot(SlotId(49), "node-1", ("node-2",), Epoch(7), next_leader="node-2"),)),
    SlotsAssigned((Slot(SlotId(50), "node-1", ("node-2",), Epoch(7), release_epoch=Epoch(9)),)),
)

CERTIFICATE = Certificate(
    "minimal",
    4,
    4,
    2,
    2,
    {"node-1": 0, "node-2": -3},
    {"node-1": 1},
    (11, 12),
    (ReadyHeirs(13, ("node-2",)),),
    {"node-1": "164/3", "node-2": "0"},
    {"node-1": "12"},
    -1,
    3,
    ("3 slots have 1 of 2 replicas: 1 nodes may hold no more of them",),
    LoadStage("3/2", "21/20", 4, 3, 2),
    _SLOTS,
)

ROWS = (
    Sample("plain", Slot(17, "node-1", ("node-2", "node-3"), Epoch(7))),
    Sample("without a leader", Slot(0, None, (), Epoch(0))),
    Sample("being released", Slot(17, "node-1", ("node-2", "node-3"), Epoch(7), "node-2", Epoch(9))),
)
