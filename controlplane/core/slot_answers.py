"""Asking a slot policy, which may be a user's own: its answer is judged before it is believed.

A wrong answer must harm nobody. It is refused with a sentence, and the table stays as it is, except that nobody owns
what he cannot: who is gone is taken out of the rows, and of the holders that are left one leads.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Final, NamedTuple

from controlplane.core.decision import Certificate
from controlplane.core.identifiers import NodeId, SlotId
from controlplane.core.plain import Plain, canonical_bytes, from_plain, to_plain
from controlplane.core.slot_policy import SlotAnswer, SlotPolicy, SlotRequest, may_leave_the_dead
from controlplane.core.slot_table import Slot
from controlplane.errors import InvalidInputError, PlacementRefusedError, StopError

_LONGEST_REFUSAL: Final = 500
"""Characters; the refusal becomes part of a decision."""
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+")


class Answered(NamedTuple):
    """What becomes of the table.

    Attributes:
        answer: the policy's, or after a refusal the table as it is: without those who are gone, or with them where the
            policy may leave the dead.
        refusal: why the policy's own answer is not taken; None if it is.
    """

    answer: SlotAnswer
    refusal: str | None


def ask(policy: SlotPolicy, request: SlotRequest) -> Answered:
    """The policy's answer if it can be believed, else one that moves nothing.

    Raises:
        StopError: the policy found that going on would do harm.
    """
    try:
        answer = policy.plan(request)
        problem = next(_problems(request, answer, dead_may_hold=may_leave_the_dead(policy)), None)
        if problem is None:
            return Answered(answer, None)
    except StopError:
        raise
    except PlacementRefusedError as error:
        problem = str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's code: whatever it raises, nobody dead may own
        problem = _sentence(error)
    rows = request.as_published() if may_leave_the_dead(policy) else tuple(_survivors(request))
    return Answered(SlotAnswer(rows), problem[:_LONGEST_REFUSAL])


def _sentence(error: BaseException) -> str:
    """What was raised and where. Addresses of objects are cut: equal requests have to give equal decisions."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" in {PurePath(frame.tb_frame.f_code.co_filename).name}, line {frame.tb_lineno}" if frame else ""
    try:
        text = f": {error}"
    except Exception:  # noqa: BLE001 - a user's exception may not even be able to say what it is
        text = ""
    sentence = f"{type(error).__name__}{where}{text}".encode(errors="backslashreplace").decode()
    return _ADDRESS.sub("0x...", sentence)


def _problems(request: SlotRequest, answer: object, *, dead_may_hold: bool) -> Iterator[str]:
    """What is wrong with an answer, in sentences; the first is meant: those after it may follow from it."""
    if not isinstance(answer, SlotAnswer):
        yield f"the answer is a {type(answer).__name__}, not a SlotAnswer"
        return
    yield from _malformed_slots(answer.slots)
    yield from _malformed_rest(answer.remembered, answer.certificate, answer.deed)
    held = request.held
    living = frozenset(node.node_id for node in request.nodes)
    answered: set[SlotId] = set()
    for slot in answer.slots:
        if not 0 <= slot.slot_id < len(held):
            yield f"slot {slot.slot_id} is none of the table's {len(held)} slots"
        if slot.slot_id in answered:
            yield f"slot {slot.slot_id} is answered twice"
        answered.add(slot.slot_id)
        if dead_may_hold and slot == request.slots[slot.slot_id]:
            continue
        yield from _row_problems(slot, held[slot.slot_id], living, request)
    for slot in () if dead_may_hold else held:
        if slot.slot_id not in answered and not _stands(slot, living):
            yield from (f"{problem}, and the answer leaves it so" for problem in _holder_problems(slot, living))


def _malformed_slots(slots: object) -> Iterator[str]:
    """What could not even be written into the log."""
    if not isinstance(slots, tuple) or not all(type(slot) is Slot for slot in slots):
        yield "the answer's slots are not a tuple of Slot"
        return
    for slot in slots:
        if type(slot.slot_id) is not int or type(slot.leader_epoch) is not int or type(slot.followers) is not tuple:
            yield f"{slot}: slot_id and leader_epoch are int, followers is a tuple"


def _malformed_rest(remembered: object, certificate: object, deed: object) -> Iterator[str]:
    if not _is_text(deed):
        yield "what the policy did is not a text"
    if not isinstance(remembered, Mapping) or not all(
        _is_text(name) and (text is None or _is_text(text)) for name, text in remembered.items()
    ):
        yield "what is to be remembered is not a map of texts"
    if certificate is not None:
        try:
            plain = to_plain(certificate)
            from_plain(Certificate, plain)
            canonical_bytes(certificate)
            if _is_too_great(plain):
                yield "the certificate has a number that needs more than 64 bits"
        except (InvalidInputError, TypeError, UnicodeEncodeError) as error:
            yield f"the certificate is none: {error}"


def _is_text(value: object) -> bool:
    """Whether a log can hold it: a text without half characters."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _is_too_great(plain: Plain) -> bool:
    """Whether there is a whole number in it that a log cannot hold."""
    match plain:
        case int():
            return not -(1 << 63) <= plain < 1 << 63
        case list():
            return any(map(_is_too_great, plain))
        case dict():
            return any(map(_is_too_great, plain.values()))
        case _:
            return False


def _row_problems(slot: Slot, held: Slot, living: frozenset[NodeId], request: SlotRequest) -> Iterator[str]:
    yield from _holder_problems(slot, living)
    if len(set(slot.replicas)) != len(slot.replicas):
        yield f"slot {slot.slot_id} has a node twice: {slot.replicas}"
    if slot.followers != tuple(sorted(slot.followers)):
        yield f"slot {slot.slot_id}: its followers {slot.followers} are not sorted by name"
    changes = slot.leader != held.leader
    expected = request.epoch if changes else held.leader_epoch
    if slot.leader_epoch != expected:
        verb = "changes" if changes else "keeps"
        yield (
            f"slot {slot.slot_id} {verb} its leader: its leader epoch has to be {expected}, not {slot.leader_epoch}; "
            "Slot.assigned sets it"
        )


def _stands(slot: Slot, living: frozenset[NodeId]) -> bool:
    """Whether a row has no holder problem; for most rows of a large table that is all that is asked."""
    return (slot.leader in living and living.issuperset(slot.followers)) or slot.replicas == ()


def _holder_problems(slot: Slot, living: frozenset[NodeId]) -> Iterator[str]:
    for node_id in slot.replicas:
        if node_id not in living:
            yield f"slot {slot.slot_id} is held by {node_id!r}, which is no living data node"
    if slot.leader is None and slot.followers:
        yield f"slot {slot.slot_id} has followers {slot.followers} and no leader"


def _survivors(request: SlotRequest) -> Iterator[Slot]:
    """The rows that lose somebody, with the holders that are left: a ready one leads, else the first by name."""
    living = frozenset(node.node_id for node in request.nodes)
    ready = request.ready
    for slot in request.held:
        if _stands(slot, living):
            continue
        left = sorted(living.intersection(slot.replicas))
        heirs = [node_id for node_id in left if (slot.slot_id, node_id) in ready] or left
        leader = slot.leader if slot.leader in left else next(iter(heirs), None)
        yield slot.assigned(leader, left, request.epoch)
