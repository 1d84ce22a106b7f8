"""Asks a slot policy, which may be a user's own, and checks its answer before it is used.

A wrong answer is refused with a sentence. The table then stays as it is, but dead nodes are removed from its rows, and
a surviving holder leads each slot that lost its leader.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Final, NamedTuple, TypeVar

from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.policy_contract import CERTIFYING_POLICIES, SlotAnswer, SlotPolicy, SlotRequest
from controlplane.core.slots.survivors import rows_of_survivors, stands
from controlplane.core.slots.table import Slot
from controlplane.core.values.canonical import CanonicalValue, canonical_bytes, from_canonical, to_canonical
from controlplane.core.values.identifiers import NodeId, SlotId
from controlplane.errors import InvalidInputError, PlacementRefusedError, StopError

_LONGEST_REFUSAL: Final = 500
"""Greatest number of characters of a refusal, which becomes part of a decision."""
_ADDRESS: Final = re.compile(r"0x[0-9a-f]+")
_Answer = TypeVar("_Answer")


class Answered(NamedTuple):
    """The answer that is used for the table.

    Attributes:
        answer: the policy's answer. After a refusal, the table as it is: without the dead, or with them if the policy
            may leave the dead in rows.
        refusal: why the policy's answer is not used; None if it is.
    """

    answer: SlotAnswer
    refusal: str | None


def ask(policy: SlotPolicy, request: SlotRequest) -> Answered:
    """The policy's answer if it is valid, otherwise one that moves nothing.

    Raises:
        StopError: the policy found that continuing would do harm.
    """
    answer = _accepted(partial(policy.plan, request), partial(_problems, policy, request))
    if not isinstance(answer, str):
        return Answered(answer, None)
    rows = request.as_published() if policy.dead_may_hold else _without_the_dead(request)
    return Answered(SlotAnswer(rows), answer[:_LONGEST_REFUSAL])


class Remembered(NamedTuple):
    """What a policy remembers of rows that it left as they were.

    Attributes:
        changes: the changes to its memory; none after a refusal.
        refusal: why the policy's changes are not used; None if they are.
    """

    changes: Mapping[str, str | None]
    refusal: str | None


def remember_leader_epochs(policy: SlotPolicy, slots: Sequence[Slot], memory: Mapping[str, str]) -> Remembered:
    """What the policy remembers of rows that it left as they were, and whose leader epochs rise.

    Raises:
        StopError: the policy found that continuing would do harm.
    """
    if not slots:
        return Remembered({}, None)
    changes = _accepted(partial(policy.remember_leader_epochs, slots, memory), _malformed_memory)
    if not isinstance(changes, str):
        return Remembered(changes, None)
    return Remembered({}, f"remember_leader_epochs: {changes}"[:_LONGEST_REFUSAL])


def _accepted(call: Callable[[], _Answer], problems: Callable[[_Answer], Iterator[str]]) -> _Answer | str:
    """The answer of a policy's code, which may be a user's, or a sentence that says why it is not used.

    Args:
        call: calls the code. No answer that is used is a text.
        problems: of the answer, as sentences.

    Raises:
        StopError: the code found that continuing would do harm.
    """
    try:
        answer = call()
        problem = next(problems(answer), None)
    except StopError:
        raise
    except PlacementRefusedError as error:
        return str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's code: after any exception, no dead node may own
        return _sentence(error)
    return answer if problem is None else problem


def _sentence(error: BaseException) -> str:
    """The exception and its place. Addresses of objects are removed: equal requests have to give equal decisions."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" in {PurePath(frame.tb_frame.f_code.co_filename).name}, line {frame.tb_lineno}" if frame else ""
    try:
        text = f": {error}"
    except Exception:  # noqa: BLE001 - a user's exception may fail to format itself
        text = ""
    sentence = f"{type(error).__name__}{where}{text}".encode(errors="backslashreplace").decode()
    return _ADDRESS.sub("0x...", sentence)


def _problems(policy: SlotPolicy, request: SlotRequest, answer: object) -> Iterator[str]:
    """The problems of an answer, as sentences. Only the first is reported, because later ones may follow from it."""
    if not isinstance(answer, SlotAnswer):
        yield f"the answer is a {type(answer).__name__}, not a SlotAnswer"
        return
    yield from _malformed_slots(answer.slots)
    yield from _malformed_rest(answer.remembered, answer.evidence)
    yield from _certificate_problems(policy.name, answer.certificate)
    dead_may_hold = policy.dead_may_hold
    held = request.held
    living = request.living
    answered: set[SlotId] = set()
    for slot in answer.slots:
        if not 0 <= slot.slot_id < len(held):
            yield f"slot {slot.slot_id} is none of the table's {len(held)} slots"
        if slot.slot_id in answered:
            yield f"slot {slot.slot_id} is answered twice"
        answered.add(slot.slot_id)
        if dead_may_hold and slot == request.slots[slot.slot_id]:
            continue
        if policy.name not in CERTIFYING_POLICIES:
            yield from _taken_last_copy(slot, held[slot.slot_id], living)
        yield from _row_problems(slot, held[slot.slot_id], living, request)
    for slot in held:
        if slot.slot_id not in answered and not stands(slot, living):
            problems = _leader_problems(slot) if dead_may_hold else _holder_problems(slot, living)
            yield from (f"{problem}, and the answer leaves it so" for problem in problems)


def _malformed_slots(slots: object) -> Iterator[str]:
    """Problems with which the rows could not be written to the log."""
    if not isinstance(slots, tuple) or not all(type(slot) is Slot for slot in slots):
        yield "the answer's slots are not a tuple of Slot"
        return
    for slot in slots:
        if type(slot.slot_id) is not int or type(slot.leader_epoch) is not int or type(slot.followers) is not tuple:
            yield f"{slot}: slot_id and leader_epoch are int, followers is a tuple"


def _malformed_rest(remembered: object, evidence: object) -> Iterator[str]:
    if not _is_text(evidence):
        yield "what the policy did is not a text"
    yield from _malformed_memory(remembered)


def _malformed_memory(remembered: object) -> Iterator[str]:
    if not isinstance(remembered, Mapping) or not all(
        _is_text(name) and (text is None or _is_text(text)) for name, text in remembered.items()
    ):
        yield "what is to be remembered is not a map of texts"


def _certificate_problems(policy_name: str, certificate: object) -> Iterator[str]:
    if certificate is not None and policy_name not in CERTIFYING_POLICIES:
        # Log verification would refuse the certificate later, when it is already in the log.
        yield f"it has a certificate, but only {', '.join(map(repr, CERTIFYING_POLICIES))} proves its plans: give None"
    elif certificate is not None:
        try:
            plain = to_canonical(certificate)
            from_canonical(Certificate, plain)
            canonical_bytes(certificate)
            if _is_too_great(plain):
                yield "the certificate has a number that needs more than 64 bits"
        except (InvalidInputError, TypeError, UnicodeEncodeError) as error:
            yield f"the certificate is none: {error}"


def _is_text(value: object) -> bool:
    """Whether the value is a text without lone surrogates, which the log can hold."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _is_too_great(plain: CanonicalValue) -> bool:
    """Whether the value contains an integer that needs more than 64 bits, which the log cannot hold."""
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


def _taken_last_copy(slot: Slot, held: Slot, living: frozenset[NodeId]) -> Iterator[str]:
    """A slot that is left empty although a living node has its data. A proof explains this itself."""
    survivors = sorted(living.intersection(held.replicas))
    if survivors and not slot.replicas:
        yield f"slot {slot.slot_id} is left to nobody, although {' and '.join(map(repr, survivors))} has its data"


def _holder_problems(slot: Slot, living: frozenset[NodeId]) -> Iterator[str]:
    for node_id in slot.replicas:
        if node_id not in living:
            yield f"slot {slot.slot_id} is held by {node_id!r}, which is no living data node"
    yield from _leader_problems(slot)


def _leader_problems(slot: Slot) -> Iterator[str]:
    if slot.leader is None and slot.followers:
        yield f"slot {slot.slot_id} has followers {slot.followers} and no leader"


def _without_the_dead(request: SlotRequest) -> tuple[Slot, ...]:
    """The rows after a refusal. Heirs need not be spread, because the next valid answer arranges the slots again."""
    return rows_of_survivors(request.held, request.living, request.ready, request.epoch, spread=False)
