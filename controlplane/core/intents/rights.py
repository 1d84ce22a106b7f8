"""Intent rights: which principals may ask for which kinds of intents, by the policy's ``intent_rights``.

An entry maps a pattern of principals, written as in a shell (``ops-*``), to the kinds of intents that it allows,
separated by spaces or commas; ``*`` stands for every kind. A principal has the rights of every pattern that matches its
name. Without entries, every principal may ask for everything.

The principal is the name that an intent carries. A Kafka record does not say which login wrote it, so any client that
may write to ``intents`` can claim any name. The broker's access control lists decide which clients may write there.
"""

from fnmatch import fnmatchcase
from typing import Final

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.intents.intent import IntentKind
from controlplane.errors import ConfigurationError

EVERY_KIND: Final = "*"
"""Stands for every kind of intent."""


def kinds_of(text: str) -> tuple[str, ...]:
    """The kinds of intents that an entry allows."""
    return tuple(text.replace(",", " ").split())


def may_ask(policy: ClusterPolicy, principal: str, kind: str) -> bool:
    """Whether a principal may ask for an intent of this kind."""
    if not policy.intent_rights:
        return True
    return any(
        allowed in (kind, EVERY_KIND)
        for pattern, kinds in policy.intent_rights.items()
        if fnmatchcase(principal, pattern)
        for allowed in kinds_of(kinds)
    )


def refusal_of(policy: ClusterPolicy, principal: str, kind: str) -> str | None:
    """Why an intent of this principal is refused; None if it is allowed."""
    if may_ask(policy, principal, kind):
        return None
    who = f"principal {principal!r:.80}" if principal else "an intent without a principal"
    allowing = [pattern for pattern, kinds in policy.intent_rights.items() if {kind, EVERY_KIND} & {*kinds_of(kinds)}]
    known = f"{', '.join(repr(pattern) for pattern in allowing)} may" if allowing else "nobody may"
    return f"{who} may not ask for {kind}: by the policy's intent_rights {known}"


def check_kinds(policy: ClusterPolicy) -> None:
    """Check that all rights name known kinds of intents.

    Raises:
        ConfigurationError: an entry has no pattern, names no kind, or names an unknown kind.
    """
    known = [kind.value for kind in IntentKind]
    for pattern, text in policy.intent_rights.items():
        kinds = kinds_of(text)
        if not pattern or not kinds:
            raise ConfigurationError(
                f"intent_rights.{pattern}={text}: write intent_rights.PATTERN=KIND..., with a pattern of principals"
            )
        unknown = [kind for kind in kinds if kind != EVERY_KIND and kind not in known]
        if unknown:
            raise ConfigurationError(
                f"intent_rights.{pattern}: {unknown[0]!r:.80} is no kind of intent; known are *, {', '.join(known)}"
            )


def check_rights(policy: ClusterPolicy) -> None:
    """Check the rights, and that at least one principal could change them again.

    Raises:
        ConfigurationError: as :func:`check_kinds`, or no pattern allows ``change_policy``.
    """
    check_kinds(policy)
    changing = {EVERY_KIND, IntentKind.CHANGE_POLICY.value}
    if policy.intent_rights and not any(changing & {*kinds_of(kinds)} for kinds in policy.intent_rights.values()):
        raise ConfigurationError(
            "intent_rights: nobody could change the policy any more; give somebody change_policy or * first"
        )
