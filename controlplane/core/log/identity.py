"""Whether what was read belongs to the log that a controller leads, or is about to lead.

The decision log, the routing table and the lease store can each be deleted, restored or pointed at by a wrong setting.
A controller that led on all the same would contradict decisions that readers have seen.
"""

from controlplane.config import DECISIONS, ROUTING_TABLE
from controlplane.core.log.state import State
from controlplane.core.routing.rows import EpochMarker
from controlplane.core.routing.topic_image import REMEDY_FOR_FORGED_MARKER, TopicImage
from controlplane.core.values.identifiers import Term
from controlplane.errors import RESTORE_OR_BEGIN_ANEW, FencedError, LogContinuityError, LogUnavailableError


def check_identity(state: State, image: TopicImage, stored_log_id: str | None) -> None:
    """Refuse to lead a log that is not the one that table and lease store know.

    Args:
        state: after the last decision of the log.
        image: what the topic of the table holds.
        stored_log_id: the log that the lease store remembers; None if it remembers none.

    Raises:
        LogContinuityError: naming what contradicts what.
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
    """Refuse to take over a log that has gone on since it was read to its end.

    Args:
        known: after the decision at which it ended.
        now: after the decision at which it ends now.
        term: under which the take-over was.

    Raises:
        LogUnavailableError: it has gone on: a later contender has fenced this one, and leads.
    """
    if now.seq > known.seq:
        message = (
            f"{DECISIONS} went on from seq {known.seq} to {now.seq} under term {now.term} while term {term} "
            "was about to take over: a later contender leads; stand again"
        )
        raise LogUnavailableError(message)


def shows_last_epoch(state: State, image: TopicImage) -> bool:
    """Whether the topic of the table ends with the epoch of this state, confirmed by its marker.

    Before the first decision of a log there is no epoch, and the topic must hold no row.
    """
    if not state.log_id:
        return not image.row_hashes
    marker = image.last_marker
    is_last = marker is not None and marker.epoch == state.epoch and image.is_confirmed
    return is_last and not image.marker_is_overwritten


def check_term(read: State, led: State) -> None:
    """Refuse to lead on once the log holds a later term.

    Args:
        read: what was read back of the log.
        led: what its leader has committed.

    Raises:
        FencedError: a later term is open, which a leader with nothing to commit would not notice.
    """
    if read.term > led.term:
        message = (
            f"{read.leader!r} has opened term {read.term}, so term {led.term} is over: has it another lease store "
            "or lease profile?"
        )
        raise FencedError(message)


def check_committed(read: State, led: State) -> None:
    """Refuse to lead on a log that ends before what its leader has committed.

    Args:
        read: what was read of the log, to its end.
        led: what its leader has committed.

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
    """Refuse an epoch of the term that is led, or of one before it, that its leader has not committed.

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
