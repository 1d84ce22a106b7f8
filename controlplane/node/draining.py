"""Handing everything over before a node leaves, and what came of it."""

from enum import Enum
from typing import Final, NamedTuple

from controlplane.core.session.messages import DrainAsked
from controlplane.core.session.node_session import HEARD_STATES
from controlplane.node.session_thread import SessionThread
from controlplane.node.shared import Shared

_PROGRESS_EVERY_MS: Final = 2_000
_WHY_NOT: Final = "is there a leader, and have other nodes copied it? The node leaves with what it holds"


class DrainOutcome(Enum):
    """What came of the wish to hand everything over."""

    DONE = "done"
    """Other nodes have taken over everything."""
    NO_OTHER_NODE = "no other node"
    """No other node can take it."""
    TIMED_OUT = "timed out"
    """The node leaves with what it still holds; its followers are promoted."""
    NOT_A_MEMBER = "not a member"
    """The node is not heard by a leader, or was never admitted: what it held, others have by now."""
    FAILED = "failed"
    """The agent has ended with an error; ``NodeAgent.check`` raises it."""
    NOT_ASKED = "not asked"
    """The agent was stopped without it."""


class Drained(NamedTuple):
    """What came of it, in slots and bundles.

    Attributes:
        outcome: see :class:`DrainOutcome`.
        held_count: how many the node held when it began.
        left_count: how many it still holds.
    """

    outcome: DrainOutcome
    held_count: int
    left_count: int


def hand_over(shared: Shared, session: SessionThread, timeout_ms: int) -> Drained:
    """Ask that other nodes take over what this one holds, and wait for it; the log shows how far it is."""
    logger, held = shared.logger, shared.holding_count()
    if session.state not in HEARD_STATES:
        logger.warning("nothing to hand over: the node is not a member now", state=session.state.value)
        return Drained(DrainOutcome.NOT_A_MEMBER, held, held)
    logger.info("handing over before leaving", **_counts(shared), timeout_ms=timeout_ms)
    session.tell(DrainAsked("stop"))
    end_at_ms = shared.clock.monotonic_ms() + timeout_ms
    while not _is_over(shared) and (wait_ms := end_at_ms - shared.clock.monotonic_ms()) > 0:
        with shared.changed:
            is_over = shared.changed.wait_for(lambda: _is_over(shared), min(wait_ms, _PROGRESS_EVERY_MS) / 1_000)
        if not is_over and wait_ms > _PROGRESS_EVERY_MS:
            logger.info("still handing over", **_counts(shared))
    left = shared.holding_count()
    if not left:
        logger.info("everything was handed over")
        return Drained(DrainOutcome.DONE, held, left)
    if shared.book.is_the_last_one:
        logger.warning("nothing was handed over: no other node can take it")
        return Drained(DrainOutcome.NO_OTHER_NODE, held, left)
    if shared.failure is not None:
        return Drained(DrainOutcome.FAILED, held, left)
    what = "nothing was" if left == held else "not everything was"
    text = f"{what} handed over within {timeout_ms} ms: " + _WHY_NOT
    logger.warning(text, **_counts(shared))
    return Drained(DrainOutcome.TIMED_OUT, held, left)


def _counts(shared: Shared) -> dict[str, int]:
    """How much the node holds, for the log."""
    return {"slots": sum(shared.book.count()), "bundles": shared.bundles.count()}


def _is_over(shared: Shared) -> bool:
    return not shared.holding_count() or shared.book.is_the_last_one or shared.failure is not None
