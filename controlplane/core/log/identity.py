"""Checks that decision log, routing table and lease store belong to the log that a controller is to lead.

Each of the three can be deleted, restored, or configured wrongly. A controller that led nevertheless would contradict
decisions that readers have already seen.
"""

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.log.state import State
from controlplane.core.routing.rows import EpochMarker
from controlplane.core.routing.topic_image import REMEDY_FOR_FORGED_MARKER, TopicImage
from controlplane.core.values.identifiers import Term
from controlplane.errors import RESTORE_OR_BEGIN_ANEW, FencedError, LogContinuityError, LogUnavailableError


def check_identity(state: State, image: TopicImage, stored_log_id: str | None) -> None:
    """Check that the log is the one that the routing table and the lease store name.

    Args:
        state: the state after the last decision of the log.
        image: the content of the table's topic.
        stored_log_id: the log id in the lease store; None if it has none.

    Raises:
        LogContinuityError: they name different logs, or decisions are missing.
    """
    marker = image.last_marker
    if not state.log_id:
        if marker is not None:
            message = (
                f"topic {DECISIONS} is empty, but {ROUTING_TABLE} holds epoch {marker.epoch} of log {marker.log_id!r}: "
                f"the decision log was deleted or recreated; {RESTORE_OR_BEGIN_ANEW}"
            )
            raise LogContinuityError(message)
        if stored_log_id is not None:
            message = (
                f"topic {DECISIONS} is empty, but the lease store remembers log {stored_log_id!r}: the decision log "
                f"was deleted or recreated; {RESTORE_OR_BEGIN_ANEW}"
            )
            raise LogContinuityError(message)
        return
    if marker is None and image.other_table is not None:
        message = (
            f"{ROUTING_TABLE} belongs to log {image.other_table.log_id!r}, {DECISIONS} to {state.log_id!r}: one was "
            f"recreated; {RESTORE_OR_BEGIN_ANEW}"
        )
        raise LogContinuityError(message)
    if stored_log_id is not None and stored_log_id != state.log_id:
        message = (
            f"the lease store remembers log {stored_log_id!r}, {DECISIONS} is {state.log_id!r}: one was recreated; "
            f"{RESTORE_OR_BEGIN_ANEW}"
        )
        raise LogContinuityError(message)
    if marker is not None and (marker.epoch, marker.seq) > (state.epoch, state.seq):
        message = (
            f"{ROUTING_TABLE} shows epoch {marker.epoch}, {DECISIONS} end at {state.epoch}: decisions were lost; "
            f"{RESTORE_OR_BEGIN_ANEW}"
        )
        raise LogContinuityError(message)


def check_end(known: State, now: State, term: Term) -> None:
    """Check that the log has not grown since a take-over read it to its end.

    Args:
        known: the state after the last decision that the take-over read.
        now: the state after the last decision now.
        term: the term of the take-over.

    Raises:
        LogUnavailableError: the log has grown: a later contender has fenced this one, and leads.
    """
    if now.seq > known.seq:
        message = (
            f"{DECISIONS} grew from seq {known.seq} to {now.seq} under term {now.term} while term {term} "
            "was about to take over: a later contender leads. Stand for election again"
        )
        raise LogUnavailableError(message)


def shows_last_epoch(state: State, image: TopicImage) -> bool:
    """Whether the table's topic ends with the epoch of this state, confirmed by its marker.

    Before the first decision of a log there is no epoch, and the topic must hold no row.
    """
    if not state.log_id:
        return not image.row_hashes
    marker = image.last_marker
    is_last = marker is not None and marker.epoch == state.epoch and image.is_confirmed
    return is_last and not image.marker_is_overwritten


def check_term(read: State, led: State) -> None:
    """Check that the log holds no later term than the leader's.

    Args:
        read: the state that was read back from the log.
        led: the state after the leader's last committed decision.

    Raises:
        FencedError: a later term is open. A leader with nothing to commit would not notice it otherwise.
    """
    if read.term > led.term:
        message = (
            f"{read.leader!r} has opened term {read.term}, so term {led.term} is over: do both use one lease store "
            "and lease profile?"
        )
        raise FencedError(message)


def check_committed(read: State, led: State) -> None:
    """Check that the log still holds everything that its leader has committed.

    Args:
        read: the state that was read from the log, to its end.
        led: the state after the leader's last committed decision.

    Raises:
        LogContinuityError: decisions were lost, or the topic was recreated.
    """
    if read.seq < led.seq:
        message = (
            f"decision {led.seq} was committed, and topic {DECISIONS} ends with {read.seq}: "
            "decisions were lost, or the topic was recreated"
        )
        raise LogContinuityError(message)


def check_marker(marker: EpochMarker | None, led: State) -> None:
    """Check that a marker of the leader's term, or of an earlier one, names an epoch that was committed.

    Raises:
        LogContinuityError: the marker was forged.
    """
    if marker is None or marker.log_id != led.log_id:
        return
    if marker.term <= led.term and marker.epoch > led.epoch:
        message = (
            f"{ROUTING_TABLE} holds a marker of epoch {marker.epoch} and term {marker.term}, and the leader of term "
            f"{led.term} has committed no epoch after {led.epoch}; {REMEDY_FOR_FORGED_MARKER}"
        )
        raise LogContinuityError(message)
