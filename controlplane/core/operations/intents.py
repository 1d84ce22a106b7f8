"""What operators' intents do, and the answer that each of them gets in the log."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from controlplane.core.bundles.bundle import Namespace, equal_bundles
from controlplane.core.bundles.events import NamespaceCreated
from controlplane.core.cluster.policy import Policy
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.image import IntentsImage
from controlplane.core.intents.intent import REASON, Intent, IntentKind
from controlplane.core.intents.rights import may_ask, refusal_of
from controlplane.core.log.decision import CauseKind
from controlplane.core.log.draft import Draft
from controlplane.core.membership.node import NodeStatus
from controlplane.core.operations.argument_checks import check_namespace_name
from controlplane.core.operations.asked import Answer, Arguments, Circumstances, done, refused, some_of, unheeded
from controlplane.core.operations.leader_operations import resign_leader
from controlplane.core.operations.level_operations import raise_feature_level
from controlplane.core.operations.node_operations import (
    drain_node,
    exclude_node,
    include_node,
    reset_node,
    set_node,
    undrain_node,
)
from controlplane.core.operations.policy_operations import change_policy
from controlplane.core.operations.slot_numbers import counted
from controlplane.core.operations.table_operations import (
    exclude_slots,
    include_slots,
    pause_reconciliation,
    pin_slots,
    refresh_table,
    resume_reconciliation,
    unpin_slots,
)
from controlplane.core.operations.wishes import denials_of, wishes_of
from controlplane.core.slots.policy_contract import OrderKind
from controlplane.core.values.identifiers import IntentId
from controlplane.core.values.inputs import InputRecord, Refusal
from controlplane.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class _Operation:
    """How a kind of intent is carried out.

    Attributes:
        carry_out: its effect and its answer.
        needed: the arguments that it must have.
        possible: the arguments that it may have besides; None means any.
        orders: what it orders, by the argument that does, as far as a slot policy may not look at it.
    """

    carry_out: Callable[[Draft, Arguments, Circumstances], Answer]
    needed: tuple[str, ...] = ()
    possible: tuple[str, ...] | None = ()
    orders: Mapping[str, OrderKind] = field(default_factory=dict)


def _create_namespace(draft: Draft, arguments: Arguments, _: Circumstances) -> Answer:
    name = arguments["namespace"]
    try:
        check_namespace_name(name)
    except ConfigurationError as error:
        return refused(str(error))
    if name in draft.state.bundles.namespaces:
        return refused(f"namespace {name!r} exists already")
    bundles = equal_bundles(name, draft.state.cluster.policy.bundles_per_namespace)
    draft.add(NamespaceCreated(Namespace(name, len(bundles)), bundles))
    return done(f"namespace {name!r} with {counted(len(bundles), 'bundle')}")


def _override_self_preservation(draft: Draft, _: Arguments, __: Circumstances) -> Answer:
    """Say whom the decision has fenced: silence is looked at before the intents that were asked along with it."""
    before = draft.before.membership.nodes
    fenced = [
        node_id
        for node_id, node in draft.state.membership.nodes.items()
        if node.status is NodeStatus.FENCED and node_id in before and before[node_id].lives
    ]
    if not fenced:
        return done("nobody was silent: nobody is fenced")
    return done(f"{counted(len(fenced), 'silent node')} fenced: {some_of(fenced)}")


def _take_snapshot(draft: Draft, _: Arguments, __: Circumstances) -> Answer:
    """The answer is all that the log says of it: whoever leads finds it there and writes."""
    return done(f"a snapshot is written of decision {draft.before.seq + 1} or a later one")


_NODE: Final = ("node",)
_SLOTS: Final = ("slots", "node")
_OPERATIONS: Final[Mapping[str, _Operation]] = {
    IntentKind.CREATE_NAMESPACE.value: _Operation(_create_namespace, ("namespace",)),
    IntentKind.OVERRIDE_SELF_PRESERVATION.value: _Operation(_override_self_preservation),
    IntentKind.DRAIN_NODE.value: _Operation(drain_node, _NODE),
    IntentKind.UNDRAIN_NODE.value: _Operation(undrain_node, _NODE),
    IntentKind.EXCLUDE_NODE.value: _Operation(exclude_node, _NODE),
    IntentKind.INCLUDE_NODE.value: _Operation(include_node, _NODE),
    IntentKind.SET_NODE.value: _Operation(
        set_node, _NODE, ("weight", "zone"), {"weight": OrderKind.WEIGHTS, "zone": OrderKind.ZONES}
    ),
    IntentKind.RESET_NODE.value: _Operation(reset_node, _NODE),
    IntentKind.PIN_SLOTS.value: _Operation(pin_slots, _SLOTS, ("leads",), {"slots": OrderKind.PINS}),
    IntentKind.UNPIN_SLOTS.value: _Operation(unpin_slots, _SLOTS),
    IntentKind.EXCLUDE_SLOTS.value: _Operation(exclude_slots, _SLOTS, orders={"slots": OrderKind.SLOT_EXCLUSIONS}),
    IntentKind.INCLUDE_SLOTS.value: _Operation(include_slots, _SLOTS),
    IntentKind.REFRESH_TABLE.value: _Operation(refresh_table),
    IntentKind.PAUSE_RECONCILIATION.value: _Operation(pause_reconciliation),
    IntentKind.RESUME_RECONCILIATION.value: _Operation(resume_reconciliation),
    IntentKind.CHANGE_POLICY.value: _Operation(change_policy, possible=None),
    IntentKind.RAISE_FEATURE_LEVEL.value: _Operation(raise_feature_level, ("level",), ("upgraded",)),
    IntentKind.RESIGN_LEADER.value: _Operation(resign_leader, ("controller",)),
    IntentKind.TAKE_SNAPSHOT.value: _Operation(_take_snapshot),
}


def take_intents(draft: Draft, records: Iterable[InputRecord], circumstances: Circumstances) -> list[Refusal]:
    """Take up some intents: their effects and their answers in the draft.

    An intent that was answered before says nothing new. One of which nothing would remain, because later ones among
    these ask for something else, has no effect and is answered so; one that only partly agrees with a later one has
    its effect first.
    """
    refusals = []
    fresh: dict[IntentId, InputRecord] = {}
    for record in records:
        intent = record.payload
        if not isinstance(intent, Intent):
            detail = f"{type(intent).__name__} is no intent"
            refusals.append(Refusal(record.coordinates, "wrong_record_type", detail, record.raw))
        elif not draft.state.intents.has_answered(intent.intent_id):
            fresh.setdefault(intent.intent_id, record)
    intents = [record.payload for record in fresh.values() if isinstance(record.payload, Intent)]
    superseded = _superseded(draft, intents, circumstances)
    for intent in intents:
        draft.because(CauseKind.INTENT, intent.intent_id, str(fresh[intent.intent_id].coordinates))
        later = superseded.get(intent.intent_id)
        answer = (
            _carry_out(draft, intent, circumstances)
            if later is None
            else Answer(IntentOutcome.SUPERSEDED, f"the later intent {later} asks for something else")
        )
        reason = intent.arguments.get(REASON)
        detail = f"{answer.detail} (reason given: {reason})" if reason else answer.detail
        draft.add(IntentAnswered(intent.intent_id, intent.kind, intent.principal, answer.outcome, detail))
    return refusals


def overrides_self_preservation(record: InputRecord, intents: IntentsImage, policy: Policy) -> bool:
    """Whether this is an unanswered, rightful intent to fence silent nodes although evictions are frozen."""
    intent = record.payload
    return (
        isinstance(intent, Intent)
        and intent.kind == IntentKind.OVERRIDE_SELF_PRESERVATION.value
        and not intents.has_answered(intent.intent_id)
        and _argument_problem(intent) is None
        and may_ask(policy, intent.principal, intent.kind)
    )


def _carry_out(draft: Draft, intent: Intent, circumstances: Circumstances) -> Answer:
    problem = _argument_problem(intent) or _missing_right(draft, intent)
    if problem is not None:
        return refused(problem)
    operation = _OPERATIONS[intent.kind]
    answer = operation.carry_out(draft, intent.arguments, circumstances)
    ordered = {kind for argument, kind in operation.orders.items() if argument in intent.arguments}
    name = draft.state.cluster.policy.slot_policy
    ignored = unheeded(circumstances.policies, name, ordered)
    if answer.outcome is not IntentOutcome.DONE or not ignored:
        return answer
    words = " and ".join(kind.value for kind in ignored)
    return answer._replace(detail=f"{answer.detail}; slot policy {name!r} does not look at {words}")


def _missing_right(draft: Draft, intent: Intent) -> str | None:
    """Why this principal may not ask; None if it may. Intents count in their order, so earlier ones change rights.

    An override works before every other intent of its decision, hence by the rights before them.
    """
    overrides = intent.kind == IntentKind.OVERRIDE_SELF_PRESERVATION.value
    policy = draft.before.cluster.policy if overrides else draft.state.cluster.policy
    return refusal_of(policy, intent.principal, intent.kind)


def _argument_problem(intent: Intent) -> str | None:
    """Why an intent cannot be meant, by its kind and the names of its arguments; None if it can."""
    operation = _OPERATIONS.get(intent.kind)
    if operation is None:
        return f"intent kind {intent.kind!r} is unknown; known are {', '.join(_OPERATIONS)}"
    missing = [name for name in operation.needed if not intent.arguments.get(name)]
    if missing:
        return f"{intent.kind} needs {', '.join(missing)}"
    possible = operation.possible
    strange = () if possible is None else intent.arguments.keys() - {*operation.needed, *possible, REASON}
    return f"{intent.kind} does not know {', '.join(sorted(strange))}" if strange else None


def _superseded(draft: Draft, intents: list[Intent], circumstances: Circumstances) -> dict[IntentId, IntentId]:
    """Which of these have no effect, each with the later one that takes it: never one that is refused itself."""
    able = {intent.intent_id for intent in intents}
    while found := _contradicted(intents, able, len(draft.state.slots.table)):
        trial = draft.fork()
        answers = {
            intent.intent_id: _carry_out(trial, intent, circumstances)
            for intent in intents
            if intent.intent_id not in found
        }
        failed = {intent_id for intent_id, answer in answers.items() if answer.outcome is IntentOutcome.REFUSED}
        if not failed & able:
            break
        able -= failed
    return found


def _contradicted(intents: list[Intent], able: set[IntentId], slot_count: int) -> dict[IntentId, IntentId]:
    """The intents whose every wish is another one in the end, with the last intent that changes it."""
    last: dict[Hashable, tuple[int, IntentId, Hashable]] = {}
    wishes = [wishes_of(intent, slot_count) for intent in intents]
    for index, intent in enumerate(intents):
        if intent.intent_id in able:
            last |= dict.fromkeys(denials_of(intent, slot_count), (index, intent.intent_id, None))
            last |= {subject: (index, intent.intent_id, wish) for subject, wish in wishes[index].items()}
    found = {}
    for index, intent in enumerate(intents):
        later = [last.get(subject, (index, intent.intent_id, wish)) for subject, wish in wishes[index].items()]
        ends = [
            (at, intent_id)
            for (at, intent_id, end), wish in zip(later, wishes[index].values(), strict=True)
            if at > index and end != wish
        ]
        if ends and len(ends) == len(wishes[index]):
            found[intent.intent_id] = max(ends)[1]
    return found
