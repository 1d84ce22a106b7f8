"""What a world is made of, apart from the stores: what each controller remembers."""

from typing import NamedTuple

from controlplane.core.election.election import Contender, ElectionState, GivingBack, Holder
from controlplane.core.election.leading import LeadingAction, LeadingState
from controlplane.core.election.lease import Lease
from controlplane.core.values.identifiers import Term
from tests.exploration.stores import HELD_MS, WAITED_MS, Kafka


class LeaseThread(NamedTuple):
    """What the thread remembers that stands for election.

    Attributes:
        election: the state of its machine, the times made comparable (see :func:`timeless`).
        greatest_term: the greatest that it has held or was told.
    """

    election: ElectionState = Contender(Term(0), 0)
    greatest_term: Term = Term(0)

    @property
    def held_term(self) -> Term | None:
        """Under which term the lease is ours, as far as the thread knows."""
        return self.election.term if isinstance(self.election, Holder) else None


class Loop(NamedTuple):
    """What the controller's loop remembers.

    Attributes:
        leading: the state of its machine, the times made comparable.
        pending: what it has to do next; nothing once it has ended.
        unanswered: whether its writer waits for the answer to a commit.
        confirmed: whether the store has confirmed the lease, and neither a writer nor a term was opened since.
        read_term: the term that the log ended with, while the election is to be told.
    """

    leading: LeadingState = LeadingState()
    pending: tuple[LeadingAction, ...] = ()
    unanswered: bool = False
    confirmed: bool = False
    read_term: Term = Term(0)


class Parts(NamedTuple):
    """What a turn may look at and change; each turn touches two or three of them."""

    thread: LeaseThread
    loop: Loop
    kafka: Kafka
    lease: Lease


def timeless(state: ElectionState) -> ElectionState:
    """Any wake-up may come at any time, so when it is due does not matter; nor how far away the deadline is."""
    match state:
        case Holder(term=term):
            return Holder(term, HELD_MS, 0, 0)
        case GivingBack(floor=floor, term=term):
            return GivingBack(floor, WAITED_MS, term, 0)
        case Contender(floor=floor):
            return Contender(floor, 0)
