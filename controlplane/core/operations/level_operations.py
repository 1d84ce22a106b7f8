"""Raises the feature level of the log, which then may hold what older controllers cannot read."""

from typing import Final

from controlplane.core.cluster.events import FeatureLevelRaised
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.draft import Draft
from controlplane.core.operations.answers import Answer, done, refused, some_of
from controlplane.core.operations.arguments import Argument, any_text
from controlplane.core.operations.intent_conflicts import no_goals
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import Arguments, OperationContext
from controlplane.core.values.events import FIRST_LEVEL
from controlplane.errors import ConfigurationError

_DIGITS: Final = 9
"""Greatest number of digits of a level. Python refuses to parse thousands of digits, which would end the leader."""


def raise_feature_level(draft: Draft, arguments: Arguments, context: OperationContext) -> Answer:
    """Raise the feature level, unless a controller that may lead next is not known to support it.

    Any controller that writes ticks may lead next. Ticks do not say which level a controller supports, so the intent
    names the controllers that were upgraded. The leader knows its own level.
    """
    level, known = int(arguments["level"]), draft.state.cluster.feature_level
    if level == known:
        return done(f"the log has feature level {known} already")
    if level < known:
        return refused(
            f"feature level {known} cannot be lowered to {level}: the decision that raised it stays in the log, and "
            f"a controller that supports {level} stops at it"
        )
    if level > FEATURE_LEVEL:
        return refused(f"the leader supports feature level {FEATURE_LEVEL}, not {level}: upgrade the controllers first")
    upgraded = set(arguments.get("upgraded", "").replace(",", " ").split())
    others = context.ticking - upgraded - {draft.state.leader}
    if others:
        return refused(
            f"{some_of(others)} may not support feature level {level} and would have to stop: upgrade the controllers, "
            "and name them as upgraded"
        )
    draft.add(FeatureLevelRaised(level))
    return done(f"feature level {known} -> {level}; controllers that do not support it stop")


def check_level(text: str) -> None:
    """Check that the text can be a feature level.

    Raises:
        ConfigurationError: it is no whole number, or has too many digits.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise ConfigurationError(f"level is {text!r:.80}, expected a whole number")


LEVEL_OPERATIONS: Final = (
    Operation(
        kind=IntentKind.RAISE_FEATURE_LEVEL,
        summary="Raise the feature level of the log for good; controllers that do not support it stop.",
        carry_out=raise_feature_level,
        arguments=(
            Argument(
                name="level",
                meaning="the new feature level, a whole number",
                required=True,
                check=check_level,
                order=None,
            ),
            Argument(
                name="upgraded",
                meaning="ids of the controllers, other than the leader, that support the level, separated by spaces",
                required=False,
                check=any_text,
                order=None,
            ),
        ),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=FIRST_LEVEL,
        command="feature-level raise LEVEL [--upgraded UPGRADED]",
        supposition="",
    ),
)
