"""The agent's log lines about its session: each change of state, and when the node begins and ceases to serve."""

from typing import Final

from structlog.typing import FilteringBoundLogger

from controlplane.core.session.node_session import HEARD_STATES, NodeSession, SessionState

STATE_EVENTS: Final = {
    SessionState.JOINING: "node asks to be admitted",
    SessionState.ACTIVE: "node is a member",
    SessionState.DRAINING: "node is draining: it is given nothing new, and other nodes take over what they can",
    SessionState.LOST_LOG: "no heartbeat was acknowledged in time",
    SessionState.FENCED: "node is fenced: its slots and bundles go to other nodes, and it asks to be admitted again",
    SessionState.LEFT: "node has left",
}
"""The event of each state that a session enters, but for :data:`LOG_REGAINED`.

The end of a superseded session is logged as the agent's error.
"""

LOG_REGAINED: Final = "heartbeats are acknowledged again"
"""The event of a session that returns from a lost log: the node was a member all the time."""

_WARNINGS: Final = frozenset({SessionState.LOST_LOG, SessionState.FENCED})


class SessionLog:
    """Compares the session with its last logged state.

    Args:
        logger: bound to the cluster and the node.
    """

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._logger = logger
        self._state = SessionState.STARTING
        self._serves = False
        self._lacked_table = False

    def compare(self, session: NodeSession, now_ms: int, epoch: int) -> None:
        """Log the changes since the last call.

        Args:
            session: in its present state.
            now_ms: monotonic.
            epoch: of the table in use.
        """
        logger = self._logger.bind(epoch=epoch, incarnation=session.incarnation)
        if session.state is not self._state and session.state in STATE_EVENTS:
            say = logger.warning if session.state in _WARNINGS else logger.info
            regained = (self._state, session.state) == (SessionState.LOST_LOG, SessionState.ACTIVE)
            say(
                LOG_REGAINED if regained else STATE_EVENTS[session.state],
                state=session.state.value,
                before=self._state.value,
            )
        self._state = session.state
        serves = now_ms < session.serve_until_ms
        lacks_table = session.lacks_table(now_ms)
        if lacks_table and not self._lacked_table:
            # To the cluster the node is a living member; only this line says why it does not serve.
            logger.warning("routing table not read to its end for too long: requests are refused until it is")
        self._lacked_table = lacks_table
        if not serves and session.state in HEARD_STATES and not lacks_table:
            return  # the session's next event gives the reason: it has lost the log
        if serves and not self._serves:
            logger.info("requests for ready slots are served")
        elif self._serves and not serves and session.state in _WARNINGS:
            logger.warning("requests are refused", state=session.state.value)
        self._serves = serves
