"""Changing the cluster's policy while it lives."""

from collections.abc import Mapping
from typing import Final

from controlplane.core.asked import Answer, Arguments, Circumstances, done, refused, unless_contradicting
from controlplane.core.draft import Draft
from controlplane.core.events import Event, PolicyChanged, SlotsExcluded, SlotsPinned, SlotsSplit
from controlplane.core.orders import inherited_exclusions, inherited_pins
from controlplane.core.plain import Plain, from_plain, to_plain
from controlplane.core.policy import FormerSilenceLimit, Policy
from controlplane.core.records import REASON
from controlplane.core.slot_policies import check_slot_policy
from controlplane.core.slot_policies.sofa import POLICY_NAME as SOFA
from controlplane.core.slot_table import split_parts
from controlplane.core.state import State
from controlplane.errors import ConfigurationError, InvalidInputError, UnknownSlotPolicyError

_OPTIONS: Final = "slot_policy_options"


def change_policy(draft: Draft, arguments: Arguments, circumstances: Circumstances) -> Answer:
    """Let another policy rule from now on: the present one with the named fields changed, in one event."""
    settings = {name: text for name, text in arguments.items() if name != REASON}
    before = draft.state.policy
    try:
        after = changed_policy(before, settings)
        check_slot_policy(circumstances.policies, after)
        _check_change(before, after, max((len(slot.replicas) for slot in draft.state.slots), default=0))
    except (ConfigurationError, UnknownSlotPolicyError) as error:
        return refused(str(error))
    if after == before:
        return done("the policy says so already")
    events = _events(draft, after, circumstances.heartbeats_offset)
    return unless_contradicting(draft, events, f"{_difference(before, after)}{_waiting(draft.state, after)}")


def changed_policy(policy: Policy, settings: Mapping[str, str]) -> Policy:
    """The policy with some fields changed.

    Args:
        policy: the present one.
        settings: texts by field; an option of the slot policy is named ``slot_policy_options.NAME``, and an empty text
            takes it away. Another slot policy begins without the former one's options.

    Raises:
        ConfigurationError: an unknown field, a value of another type, or values that contradict each other.
    """
    plain = to_plain(policy)
    if not isinstance(plain, dict) or not settings:
        raise ConfigurationError("say what to change: NAME=VALUE, with a field of the policy as the name")
    options = plain[_OPTIONS]
    if not isinstance(options, dict) or settings.get("slot_policy", policy.slot_policy) != policy.slot_policy:
        options = plain[_OPTIONS] = {}
    for name, text in sorted(settings.items()):
        field, _, option = name.partition(".")
        if field == _OPTIONS and option:
            options.pop(option, None)
            options |= {option: text} if text else {}
        elif option or field == _OPTIONS or field not in plain:
            known = ", ".join(f"{_OPTIONS}.NAME" if each == _OPTIONS else each for each in plain)
            raise ConfigurationError(f"the policy has no field {name!r:.80}; it has {known}")
        else:
            plain[field] = _parsed(name, text, plain[field])
    try:
        return from_plain(Policy, plain)
    except InvalidInputError as error:
        raise ConfigurationError(error.detail) from error


def _parsed(name: str, text: str, known: Plain) -> Plain:
    """A value of the type that the field has."""
    if isinstance(known, str):
        return text
    kind = type(known)
    try:
        if isinstance(known, bool):
            return {"true": True, "false": False}[text]
        return int(text) if isinstance(known, int) else float(text)  # too many digits are a ValueError as well
    except (ValueError, KeyError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, kind.__name__)
        raise ConfigurationError(f"{name} is {text!r:.80}, expected {wanted}") from None


def _check_change(before: Policy, after: Policy, most_holders: int) -> None:
    if after.slot_policy == SOFA and most_holders > after.replica_count:
        raise ConfigurationError(
            f"slots have up to {most_holders} replicas, and sofa cannot lower that to {after.replica_count}: lower "
            "replica_count under minimal first, and change slot_policy then"
        )
    if after.hash_function is not before.hash_function:
        raise ConfigurationError("hash_function cannot change while the cluster lives: every key would move")
    if after.slot_count < before.slot_count:
        raise ConfigurationError(
            f"slot_count {after.slot_count} is less than {before.slot_count}: slots can be split, but not joined again"
        )


def _events(draft: Draft, after: Policy, heartbeats_offset: int) -> list[Event]:
    """The change with all its consequences, ready to be applied in this order."""
    state = draft.state
    count = len(state.slots)
    events: list[Event] = [PolicyChanged(after, _former_silence_limit(state, after, heartbeats_offset))]
    if after.slot_count == count:
        return events
    events.append(SlotsSplit(split_parts(state.slots, after.slot_count, draft.epoch)))
    pins = inherited_pins(state.pins, count, after.slot_count)
    exclusions = inherited_exclusions(state.exclusions, count, after.slot_count)
    events += [SlotsPinned(pins)] if pins else []
    events += [SlotsExcluded(exclusions)] if exclusions else []
    return events


def _former_silence_limit(state: State, after: Policy, heartbeats_offset: int) -> FormerSilenceLimit | None:
    """A shorter limit waits until everybody who knows only a longer one has stopped; a new shortening waits anew."""
    if after.silence_limit_ms >= state.silence_limit_ms:
        return None
    if after.silence_limit_ms == state.policy.silence_limit_ms:
        return state.former_silence_limit
    return FormerSilenceLimit(state.silence_limit_ms, heartbeats_offset)


def _difference(before: Policy, after: Policy) -> str:
    old, new = to_plain(before), to_plain(after)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return ""
    return ", ".join(f"{name} {_shown(old[name])} -> {_shown(new[name])}" for name in new if old[name] != new[name])


def _shown(value: Plain) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={text}" for name, text in value.items()) + "}"
    return str(value)


def _waiting(state: State, after: Policy) -> str:
    longest_ms = state.silence_limit_ms
    if after.silence_limit_ms >= longest_ms:
        return ""
    return f"; {longest_ms} ms go on to fence until every node that may still rely on them has stopped"
