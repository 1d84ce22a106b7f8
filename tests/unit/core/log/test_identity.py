"""Whether log, table and lease store belong together, and whether a log is still the one that is led."""

from dataclasses import replace

import pytest

from controlplane.core.log.identity import (
    check_committed,
    check_end,
    check_identity,
    check_marker,
    check_term,
    shows_last_epoch,
)
from controlplane.core.log.state import State
from controlplane.core.routing.rows import SETTINGS_KEY, EpochMarker
from controlplane.core.routing.topic_image import TopicImage
from controlplane.core.values.digests import format_digest, row_hash
from controlplane.core.values.identifiers import Epoch, Seq, Term
from controlplane.errors import FencedError, LogContinuityError, LogUnavailableError

SETTINGS = SETTINGS_KEY.encode()
LED = State(log_id="ours", seq=Seq(9), epoch=Epoch(4), term=Term(3))


def _marker(log_id: str = "ours", *, epoch: int = 4, seq: int = 9, term: int = 3) -> EpochMarker:
    return EpochMarker(Term(term), Epoch(epoch), Seq(seq), log_id, 1, "", format_digest(row_hash(SETTINGS, b"row")))


def _image(marker: EpochMarker | None, followed: str = "") -> TopicImage:
    image = TopicImage(followed)
    image.put(SETTINGS, b"row")
    if marker is not None:
        image.mark(marker)
    return image


@pytest.mark.parametrize("stored_log_id", [None, "ours"])
@pytest.mark.parametrize("marker", [None, _marker(), _marker(epoch=3, seq=8)])
def test_a_table_of_the_log_and_one_that_is_behind_it_may_be_led(
    marker: EpochMarker | None, stored_log_id: str | None
) -> None:
    """A leader may have died before it told the lease store, and a table is repaired."""
    check_identity(LED, _image(marker, "ours"), stored_log_id)


@pytest.mark.parametrize(
    ("state", "marker", "stored_log_id", "problem"),
    [
        (State(), _marker(), None, "decisions is empty, but routing-table holds epoch 4 of log 'ours'"),
        (State(), None, "ours", "decisions is empty, but the lease store remembers log 'ours'"),
        (LED, _marker("other"), None, "routing-table belongs to log 'other', decisions to 'ours'"),
        (LED, None, "other", "the lease store remembers log 'other', decisions is 'ours'"),
        (LED, _marker(epoch=5, seq=10), None, "routing-table shows epoch 5, decisions end at 4"),
    ],
)
def test_what_contradicts_itself_is_not_led(
    state: State, marker: EpochMarker | None, stored_log_id: str | None, problem: str
) -> None:
    """Something was deleted or recreated: the message names the two that do not fit."""
    with pytest.raises(LogContinuityError, match=problem):
        check_identity(state, _image(marker, state.log_id), stored_log_id)


def test_a_log_that_has_gone_on_is_not_taken_over() -> None:
    """The contradiction is explained: a later contender leads, and this one stands again."""
    check_end(LED, LED, Term(4))
    with pytest.raises(LogUnavailableError, match="from seq 9 to 10 under term 5 while term 4"):
        check_end(LED, replace(LED, seq=Seq(10), term=Term(5)), Term(4))


def test_a_leader_ends_at_a_later_term_and_at_a_log_that_lost_its_decisions() -> None:
    """Its own term and its own last decision are in order."""
    check_term(LED, LED)
    check_committed(LED, LED)
    with pytest.raises(FencedError, match="has opened term 4, so term 3 is over"):
        check_term(replace(LED, term=Term(4)), LED)
    with pytest.raises(LogContinuityError, match="decision 9 was committed, and topic decisions ends with 8"):
        check_committed(replace(LED, seq=Seq(8)), LED)


@pytest.mark.parametrize(
    ("marker", "forged"),
    [
        (None, False),
        (_marker(), False),
        (_marker(epoch=5), True),
        (_marker(epoch=5, term=2), True),
        (_marker(epoch=5, term=4), False),
        (_marker("other", epoch=5), False),
    ],
)
def test_an_epoch_that_the_leader_has_not_committed_is_forged(marker: EpochMarker | None, *, forged: bool) -> None:
    """One of a later term may be another leader's, which the writer's fence tells; another log's is passed by."""
    if not forged:
        check_marker(marker, LED)
        return
    with pytest.raises(LogContinuityError, match="holds a marker of epoch 5"):
        check_marker(marker, LED)


def test_only_the_confirmed_marker_of_the_last_epoch_shows_the_table() -> None:
    """A leader writes the whole table again in every other case."""
    assert shows_last_epoch(State(), TopicImage())
    assert not shows_last_epoch(State(), _image(None))
    assert not shows_last_epoch(LED, _image(None, "ours"))
    assert not shows_last_epoch(LED, _image(_marker(epoch=3), "ours"))
    differing = _image(None, "ours")
    differing.put(b"foreign", b"row")
    differing.mark(_marker())
    assert not shows_last_epoch(LED, differing)
    image = _image(_marker(), "ours")
    assert shows_last_epoch(LED, image)
    image.overwrite_marker()
    assert not shows_last_epoch(LED, image)
