"""Raising the feature level of the log: from then on it may hold what older controllers cannot read."""

from controlplane.core.cluster.events import FeatureLevelRaised
from controlplane.core.cluster.policy import FEATURE_LEVEL
from controlplane.core.log.draft import Draft
from controlplane.core.operations.asked import Answer, Arguments, Circumstances, done, refused, some_of


def raise_feature_level(draft: Draft, arguments: Arguments, circumstances: Circumstances) -> Answer:
    """Let the log have a greater level, if nobody is known who would have to stop.

    A controller that ticks may lead next. Ticks do not say which level it supports, so the operator names those that
    he has upgraded; the leader speaks for itself.
    """
    text, known = arguments["level"], draft.state.cluster.feature_level
    if not text.isascii() or not text.isdigit():
        return refused(f"level is {text!r:.80}, expected a whole number")
    level = int(text)
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
    others = circumstances.ticking - upgraded - {draft.state.leader}
    if others:
        return refused(
            f"{some_of(others)} may not support feature level {level} and would have to stop: upgrade the controllers, "
            "and name them as upgraded"
        )
    draft.add(FeatureLevelRaised(level))
    return done(f"feature level {known} -> {level}; controllers that do not support it stop")
