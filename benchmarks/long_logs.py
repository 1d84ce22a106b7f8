"""Fast generation of decision logs of any length: chains of decisions with valid digests, which move one slot each.

Deciding as a leader costs far more than reading a decision, and these logs are only read. The core therefore makes one
sample. The canonical forms of that decision and of its state become templates, into which numbers are filled. The core
folds the start of every log while it is generated, so a template that is no longer correct is found at once.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from controlplane.codec.conversion import to_datum
from controlplane.codec.decisions import DecisionAssembler, decision_key, encode_decision
from controlplane.codec.framing import default_framing
from controlplane.config import DECISIONS, HEARTBEATS, MEMBERSHIP
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.decide import Opening, decide, open_term
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Cause, CauseKind, Decision
from controlplane.core.log.draft import SealedDecision
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import NodeJoined, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.events import SlotsAssigned
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import canonical_bytes
from controlplane.core.values.digests import add_hashes, format_digest, row_hash
from controlplane.core.values.entries import Entries, entry_share
from controlplane.core.values.identifiers import Coordinates, Epoch, Seq, Term
from controlplane.core.values.inputs import InputRecord
from controlplane.errors import InvariantViolationError
from controlplane.ports import OutgoingRecord

CHECKED: Final = 1_000
"""The number of decisions that are folded while the log is generated."""
_STEP_MS: Final = 1_000
_PLACE: Final = f"{HEARTBEATS}[0]"
_SEQ, _EPOCH, _TIME, _SLOT, _POSITION = (8_000_000_000_000 + number for number in range(5))
_ENTRIES: Final = 0xFEED_FACE_CAFE_BEEF
_PREVIOUS, _STATE, _LEADER = "@previous@", "@state@", "@leader@"
_SAMPLE_SLOT: Final = Slot(_SLOT, _LEADER, (), Epoch(_EPOCH))
_FIELDS: Final = {
    str(_SEQ): "%(seq)d",
    str(_EPOCH): "%(epoch)d",
    str(_TIME): "%(decided_at_ms)d",
    str(_SLOT): "%(slot_id)d",
    str(_POSITION): "%(position)d",
    format_digest(_ENTRIES): "%(entries)s",
    _PREVIOUS: "%(previous)s",
    _STATE: "%(state)s",
    _LEADER: "%(leader)s",
}


def founded(slots: int, nodes: int) -> list[SealedDecision]:
    """The first decisions of a cluster whose nodes have joined, made by the core."""
    policy = ClusterPolicy(slot_count=slots, positions_interval_ms=1 << 40)
    opened = open_term(State(), Observations(), Term(1), "bench", "bench", Opening(new_log=("bench", policy)))
    joins = [
        InputRecord(
            Coordinates(MEMBERSHIP, 0, index, 0),
            NodeJoined(f"node-{index:03}", 1, NodeRole.DATA, (), "", 1, 0, "1", 0),
            b"",
        )
        for index in range(nodes)
    ]
    tick = InputRecord(Coordinates(HEARTBEATS, 0, 0, _STEP_MS), Tick("bench", 0), b"")
    joined = decide(opened.state, observe(Observations(), [*joins, tick])).sealed
    if joined is None:
        message = "the joins were not decided on"
        raise InvariantViolationError(message)
    return [opened, joined]


def records_of(decision: Decision) -> list[OutgoingRecord]:
    """The records of a decision that the core made."""
    return [OutgoingRecord(DECISIONS, decision_key(decision.seq), part, 0) for part in encode_decision(decision)]


class LongLog:
    """Generates the decisions after a state. Each gives one slot to another node."""

    def __init__(self, state: State) -> None:
        """Begin after ``state``, whose nodes hold its slots."""
        self._before = state
        self._rows: list[tuple[str, int] | None] = [None] * len(state.slots.table)
        self._shares = [entry_share(slot.slot_id, slot) for slot in state.slots.table]
        self._leaders = sorted(state.membership.nodes)
        self._entries = state.slots.rows.digest
        self._last_digest = state.last_digest
        self._seq, self._epoch, self._decided_at_ms = int(state.seq), int(state.epoch), state.decided_at_ms
        sample = _sample(state)
        self._decision_form = _template(canonical_bytes(sample))
        self._slot_form = _template(canonical_bytes(_SAMPLE_SLOT))
        self._state_form = _template(_summary(_after(state, sample)))
        self._datum: dict[str, Any] = {"part": 0, "part_count": 1, "continues": False, **to_datum(sample)}
        self._framing = default_framing()
        self._checked: State | None = state
        self._assembler = DecisionAssembler()

    def records(self, count: int) -> Iterator[OutgoingRecord]:
        """The next decisions, as records of the log."""
        return (self._next() for _ in range(count))

    def state(self) -> State:
        """The state after the last decision made."""
        slots = [
            old if row is None else Slot(old.slot_id, row[0], (), Epoch(row[1]))
            for old, row in zip(self._before.slots.table, self._rows, strict=True)
        ]
        return replace(
            self._before,
            seq=Seq(self._seq),
            epoch=Epoch(self._epoch),
            decided_at_ms=self._decided_at_ms,
            positions={**self._before.positions, _PLACE: self._position},
            slots=replace(self._before.slots, rows=Entries(enumerate(slots))),
            last_digest=self._last_digest,
        )

    @property
    def _position(self) -> int:
        return 10 * self._seq

    def _next(self) -> OutgoingRecord:
        self._seq += 1
        self._epoch += 1
        self._decided_at_ms += _STEP_MS
        slot_id = self._seq % len(self._rows)
        leader = self._leaders[(self._seq // len(self._rows) + slot_id) % len(self._leaders)]
        values = {
            "seq": self._seq,
            "epoch": self._epoch,
            "decided_at_ms": self._decided_at_ms,
            "slot_id": slot_id,
            "position": self._position,
            "leader": leader,
            "previous": self._last_digest,
        }
        share = row_hash(canonical_bytes(slot_id), (self._slot_form % values).encode())
        self._entries = add_hashes(self._entries, share, self._shares[slot_id])
        self._rows[slot_id], self._shares[slot_id] = (leader, self._epoch), share
        values["entries"] = format_digest(self._entries)
        values["state"] = hashlib.sha256((self._state_form % values).encode()).hexdigest()
        self._last_digest = hashlib.sha256((self._decision_form % values).encode()).hexdigest()
        value = self._encoded(values)
        if self._checked is not None:
            self._check(value)
        return OutgoingRecord(DECISIONS, decision_key(Seq(self._seq)), value, 0)

    def _encoded(self, values: Mapping[str, Any]) -> bytes:
        datum = self._datum
        datum["seq"], datum["epoch"], datum["decided_at_ms"] = self._seq, self._epoch, self._decided_at_ms
        datum["previous_digest"], datum["state_digest"] = values["previous"], values["state"]
        datum["positions"][_PLACE] = self._position
        slot = datum["events"][0][1]["slots"][0]
        slot["slot_id"], slot["leader"], slot["leader_epoch"] = values["slot_id"], values["leader"], self._epoch
        return self._framing.encode(Decision.__name__, datum)

    def _check(self, value: bytes) -> None:
        """Fold the decision as a reader would, for the first decisions of the log."""
        decision = self._assembler.add(value)
        if self._checked is None or decision is None:
            message = "a made decision is not whole"
            raise InvariantViolationError(message)
        self._checked = apply_decision(self._checked, decision)
        if self._checked.seq - self._before.seq >= CHECKED:
            self._checked = None


def _sample(state: State) -> Decision:
    return Decision(
        seq=Seq(_SEQ),
        term=state.term,
        epoch=Epoch(_EPOCH),
        log_id=state.log_id,
        controller_id=state.leader,
        feature_level=state.cluster.feature_level,
        decided_at_ms=_TIME,
        causes=(Cause(CauseKind.PLAN_CONTINUED, "bench", "made by the benchmark"),),
        events=(SlotsAssigned((_SAMPLE_SLOT,)),),
        positions={**state.positions, _PLACE: _POSITION},
        policy_fingerprint=state.cluster.policy.fingerprint(),
        certificate=None,
        previous_digest=_PREVIOUS,
        state_digest=_STATE,
        moves_carried_out=1,
        leader_changes_carried_out=1,
    )


def _after(state: State, sample: Decision) -> State:
    return replace(
        state,
        seq=sample.seq,
        epoch=sample.epoch,
        decided_at_ms=sample.decided_at_ms,
        positions=sample.positions,
    )


def _summary(state: State) -> bytes:
    """The input of the state's digest, with a sentinel for the digest of the slot table."""
    rows = format_digest(state.slots.rows.digest).encode()
    return state.summary().replace(rows, format_digest(_ENTRIES).encode())


def _template(canonical: bytes) -> str:
    text = canonical.decode().replace("%", "%%")
    for sentinel, field in _FIELDS.items():
        text = text.replace(sentinel, field)
    return text
