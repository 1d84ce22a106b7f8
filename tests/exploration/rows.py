"""The rows of the machines' transition tables, named alike where they are counted and where a search uses them."""

from controlplane.core.election import election, steps
from controlplane.core.election.election import ElectionState
from controlplane.core.election.messages import ElectionEvent
from controlplane.core.election.steps import ControllerPhase
from controlplane.core.session import node_session
from controlplane.core.session.node_session import SessionState


def election_row(before: type[ElectionState], event: type[ElectionEvent], after: type[ElectionState]) -> str:
    """A row of the election, which counts once for each kind of state that it may lead to."""
    return f"{before.__name__}, {event.__name__} -> {after.__name__}"


def loop_row(phase: ControllerPhase, trigger: steps.ControllerTrigger) -> str:
    """A row of the controller's loop."""
    return f"{phase.value}, {trigger.value}"


def session_row(state: SessionState, trigger: node_session.SessionTrigger) -> str:
    """A row of a node's session."""
    return f"node {state.value}, {trigger.value}"


def rows_of_controllers() -> set[str]:
    """Every row that controllers have."""
    rows = {
        election_row(state, event, after)
        for (state, event), row in election.TRANSITIONS.items()
        for after, _ in row.outcomes
    }
    return rows | {loop_row(phase, trigger) for phase, trigger in steps.TRANSITIONS}


def rows_of_nodes() -> set[str]:
    """Every row that nodes have."""
    return {session_row(state, trigger) for state, trigger in node_session.TRANSITIONS}
