"""Changes the policy of a running cluster."""

from collections.abc import Mapping
from typing import Final

from controlplane.core.cluster.events import PolicyChanged
from controlplane.core.cluster.policy import ClusterPolicy, FormerSilenceLimit
from controlplane.core.intents.intent import REASON, IntentKind
from controlplane.core.intents.rights import check_kinds, check_rights
from controlplane.core.log.draft import Draft
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.membership.log_time import UNDATED_OFFSET
from controlplane.core.operations.answers import (
    Answer,
    done,
    refused,
    some_of,
    unheeded,
    unless_contradicting,
)
from controlplane.core.operations.intent_conflicts import policy_fields
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import Arguments, OperationContext
from controlplane.core.operations.slot_numbers import named_slots
from controlplane.core.slots.events import SlotsExcluded, SlotsPinned, SlotsSplit
from controlplane.core.slots.pins import inherited_exclusions, inherited_pins
from controlplane.core.slots.policies import check_slot_policy
from controlplane.core.slots.policy_contract import OrderKind
from controlplane.core.slots.table import split_parts
from controlplane.core.values.canonical import (
    CanonicalValue,
    from_canonical,
    later_fields_in_use,
    parsed_text,
    to_canonical,
)
from controlplane.core.values.events import FIRST_LEVEL
from controlplane.errors import ConfigurationError, InvalidInputError, UnknownSlotPolicyError

_OPTIONS: Final = "slot_policy_options"
_MAPS: Final[Mapping[str, str]] = {_OPTIONS: "NAME", "intent_rights": "PATTERN"}
"""Fields whose entries are set one by one, with the placeholder for an entry's name."""


def change_policy(draft: Draft, arguments: Arguments, context: OperationContext) -> Answer:
    """Change the named fields of the policy, in one event."""
    settings = {name: text for name, text in arguments.items() if name != REASON}
    before = draft.state.cluster.policy
    try:
        after = changed_policy(before, settings)
        check_slot_policy(context.policies, after, draft.state.slots.table)
        _check_change(draft.state, after, context.heartbeats_offset)
    except (ConfigurationError, UnknownSlotPolicyError) as error:
        return refused(str(error))
    if after == before:
        return done("the policy says so already")
    events = _events(draft, after, context.heartbeats_offset)
    detail = f"{_difference(before, after)}{_waiting(draft.state, after)}"
    if after.slot_policy != before.slot_policy:
        detail += _ignored(draft.state, after, context)
    return unless_contradicting(draft, events, detail)


def changed_policy(policy: ClusterPolicy, settings: Mapping[str, str]) -> ClusterPolicy:
    """The policy with some fields changed.

    Args:
        policy: the current policy.
        settings: texts by field. An option of the slot policy is named ``slot_policy_options.NAME``, an intent right
            ``intent_rights.PATTERN``; an empty text removes either. Another slot policy starts without the options of
            the former one.

    Raises:
        ConfigurationError: an unknown field, a value of another type, or values that contradict each other.
    """
    plain = to_canonical(policy)
    if not isinstance(plain, dict) or not settings:
        raise ConfigurationError("say what to change: NAME=VALUE, with a field of the policy as the name")
    if settings.get("slot_policy", policy.slot_policy) != policy.slot_policy:
        plain[_OPTIONS] = {}
    for name, text in sorted(settings.items()):
        field, _, entry = name.partition(".")
        entries = plain.get(field)
        if isinstance(entries, dict) and entry:
            entries.pop(entry, None)
            entries |= {entry: text} if text else {}
        elif entry or field not in plain or isinstance(entries, dict):
            known = ", ".join(f"{each}.{_MAPS[each]}" if each in _MAPS else each for each in plain)
            raise ConfigurationError(f"the policy has no field {name!r:.80}; it has {known}")
        else:
            plain[field] = _parsed(name, text, entries)
    try:
        changed = from_canonical(ClusterPolicy, plain)
    except InvalidInputError as error:
        raise ConfigurationError(error.detail.removeprefix(f"{ClusterPolicy.__name__}.")) from error
    check_kinds(changed)
    return changed


def check_settings(settings: Mapping[str, str]) -> None:
    """Check settings as far as the current policy does not matter: the names, types and ranges of fields.

    Raises:
        ConfigurationError: as :func:`changed_policy`.
    """
    changed_policy(ClusterPolicy(), settings)


def _parsed(name: str, text: str, known: CanonicalValue) -> CanonicalValue:
    try:
        return parsed_text(name, text, known)
    except InvalidInputError as error:
        raise ConfigurationError(error.detail) from error


def _check_change(state: State, after: ClusterPolicy, heartbeats_offset: int) -> None:
    before = state.cluster.policy
    for name, level in later_fields_in_use(after).items():
        if state.cluster.feature_level < level:
            raise ConfigurationError(
                f"{name} need feature level {level}, the log has {state.cluster.feature_level}: "
                "raise it first, when every controller supports it"
            )
    undated = heartbeats_offset == UNDATED_OFFSET and not state.cluster.has_several_brokers_rules
    if undated and after.silence_limit_ms < before.silence_limit_ms:
        raise ConfigurationError(
            "silence_limit_ms cannot be shortened while the leader reads no ticks of heartbeats partition 0, which "
            "count the time until all members know: ask again when controlplane_heartbeat_partitions_without_ticks is 0"
        )
    check_rights(after)
    if after.hash_function is not before.hash_function:
        raise ConfigurationError("hash_function cannot change while the cluster lives: every key would move")
    if after.slot_count < before.slot_count:
        raise ConfigurationError(
            f"slot_count {after.slot_count} is less than {before.slot_count}: slots can be split, but not joined again"
        )


def _events(draft: Draft, after: ClusterPolicy, heartbeats_offset: int) -> list[Event]:
    """The change and all its consequences, in the order in which they are applied."""
    state = draft.state
    count = len(state.slots.table)
    events: list[Event] = [PolicyChanged(after, _former_silence_limit(state, after, heartbeats_offset))]
    if after.slot_count == count:
        return events
    events.append(SlotsSplit(split_parts(state.slots.table, after.slot_count, draft.epoch)))
    pins = inherited_pins(state.slots.pins, count, after.slot_count)
    exclusions = inherited_exclusions(state.slots.exclusions, count, after.slot_count)
    events += [SlotsPinned(pins)] if pins else []
    events += [SlotsExcluded(exclusions)] if exclusions else []
    return events


def _former_silence_limit(state: State, after: ClusterPolicy, heartbeats_offset: int) -> FormerSilenceLimit | None:
    """The limit until which a shortened silence limit waits, so that nodes that know only a longer one have stopped.

    A new shortening starts the wait again.
    """
    if after.silence_limit_ms >= state.cluster.silence_limit_ms:
        return None
    if after.silence_limit_ms == state.cluster.policy.silence_limit_ms:
        return state.cluster.former_silence_limit
    return FormerSilenceLimit(state.cluster.silence_limit_ms, heartbeats_offset)


def _difference(before: ClusterPolicy, after: ClusterPolicy) -> str:
    old, new = to_canonical(before), to_canonical(after)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return ""
    return ", ".join(f"{name} {_shown(old[name])} -> {_shown(new[name])}" for name in new if old[name] != new[name])


def _shown(value: CanonicalValue) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={text}" for name, text in value.items()) + "}"
    return str(value)


def _waiting(state: State, after: ClusterPolicy) -> str:
    longest_ms = state.cluster.silence_limit_ms
    if after.silence_limit_ms >= longest_ms:
        return ""
    return f"; nodes are fenced after {longest_ms} ms until every node can have read the shorter limit"


def _ignored(state: State, after: ClusterPolicy, context: OperationContext) -> str:
    """The sentence of an answer about the standing orders that the new slot policy ignores; empty without any."""
    weighed = [name for name, order in state.membership.orders.items() if order.weight is not None]
    zoned = [name for name, order in state.membership.orders.items() if order.zone is not None]
    standing = {
        OrderKind.PINS: (
            state.slots.pins,
            f"pins of {named_slots(pin.slot_id for pin in state.slots.pins)}",
        ),
        OrderKind.SLOT_EXCLUSIONS: (
            state.slots.exclusions,
            f"exclusions of {named_slots(each.slot_id for each in state.slots.exclusions)}",
        ),
        OrderKind.WEIGHTS: (weighed, f"weights of {some_of(weighed)}"),
        OrderKind.ZONES: (zoned, f"zones of {some_of(zoned)}"),
    }
    ignored = unheeded(context.policies, after.slot_policy, [kind for kind in standing if standing[kind][0]])
    if not ignored:
        return ""
    words = "; ".join(standing[kind][1] for kind in ignored)
    return f"; slot policy {after.slot_policy!r} does not look at what stands: {words}"


POLICY_OPERATIONS: Final = (
    Operation(
        kind=IntentKind.CHANGE_POLICY,
        summary="Change fields of the policy in one decision; each argument is a field with its new value.",
        carry_out=change_policy,
        arguments=(),
        check_settings=check_settings,
        goals=policy_fields,
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="policy set NAME=VALUE...",
        supposition="policy NAME=VALUE...",
    ),
)
