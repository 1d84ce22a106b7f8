"""What the controllers share: Kafka as a value, and the lease, whose rules are the core's own.

Every time is a choice here, so nothing has a clock: a lease may run out, a transaction may time out and a request may
arrive late at any moment. That covers every clock that drifts or jumps and every pause, and more than can happen: what
holds here holds whatever time does.
"""

from typing import NamedTuple

from controlplane.core.values.identifiers import ControllerId, Term

LIVING, GONE = "living", "gone"
"""What the lease store calls the process of a controller that runs now, and whichever ran before it."""
HELD_MS = 1
"""The explored time stands at 0: a lease that ends then has run out, one that ends at this time has not."""
WAITED_MS = 1
"""Whoever has given the lease back asks for it anew at this time, and until then says again that it gives it back."""


class Decision(NamedTuple):
    """A decision on its way into the log.

    Attributes:
        controller: who has taken it.
        term: under which term.
        opens_term: whether it is the first of its term.
        follows_end: whether it was taken on what was the log's end.
        by_leader: whether it was taken by the process that had opened the log's last term.
    """

    controller: int
    term: Term
    opens_term: bool
    follows_end: bool
    by_leader: bool


class Kafka(NamedTuple):
    """The broker, its transaction coordinator and the decision log under the cluster's one transactional id.

    Attributes:
        writer: the controller whose writer was opened last and was not fenced since; None if there is none.
        transaction: what that writer has sent or appended and not ended. It outlives its writer's process, and nobody
            else's opening.
        appended: whether the broker has it: then it can time out. Otherwise it is still on its way.
        late_opening: whether an ``init_transactions`` that its sender gave up is still on its way.
        log_term: the term of the log's last decision.
        log_leader: who opened that term and still is the same process; None if that one is gone.
        at_end: for each controller, as a bit: what it would decide on is what the log says.
    """

    writer: int | None = None
    transaction: Decision | None = None
    appended: bool = False
    late_opening: bool = False
    log_term: Term = Term(0)
    log_leader: int | None = None
    at_end: int = 0

    def opened_by(self, controller: int | None) -> "Kafka":
        """A writer was opened: every earlier one is fenced and its transaction aborted."""
        return self._replace(writer=controller, transaction=None, appended=False)

    def without_transaction(self) -> "Kafka":
        """Aborted, and its writer may go on."""
        return self._replace(transaction=None, appended=False)

    def committed(self, decision: Decision) -> "Kafka":
        """In the log: what everybody knew of its end is out of date, until its writer is told."""
        log_leader = decision.controller if decision.opens_term else self.log_leader
        return self.without_transaction()._replace(log_term=decision.term, log_leader=log_leader, at_end=0)

    def known_by(self, controller: int) -> "Kafka":
        """This controller has read the log to its end, or knows that what it wrote is that end."""
        return self._replace(at_end=self.at_end | 1 << controller)

    def left_by(self, controller: int) -> "Kafka":
        """This controller has closed its writer; what it has sent stays."""
        writer = None if self.writer == controller else self.writer
        return self._replace(writer=writer, at_end=self.at_end & ~(1 << controller))

    def ended(self, controller: int) -> "Kafka":
        """This controller's process has ended."""
        log_leader = None if self.log_leader == controller else self.log_leader
        return self.left_by(controller)._replace(log_leader=log_leader)

    def is_at_end(self, controller: int) -> bool:
        """Whether what this controller knows is what the log says."""
        return bool(self.at_end >> controller & 1)


def owner_of(controller: int) -> ControllerId:
    """What the lease store calls a controller."""
    return f"c{controller}"


class BrokenError(Exception):
    """Something has happened that must never be."""


def commit(kafka: Kafka, decision: Decision) -> Kafka:
    """The broker commits. The log is judged decision by decision, each against the one before: no more has to be kept.

    Raises:
        BrokenError: the log must not hold this.
    """
    who, term = f"c{decision.controller}", decision.term
    if not decision.follows_end:
        raise BrokenError(f"{who} decides without knowing what the log holds already")
    if term < kafka.log_term:
        raise BrokenError(f"the term falls from {kafka.log_term} to {term}")
    if decision.opens_term and term == kafka.log_term:
        raise BrokenError(f"term {term} is opened twice")
    if not decision.opens_term and not (decision.by_leader and term == kafka.log_term):
        raise BrokenError(f"{who} decides in term {term}, which it has not opened")
    return kafka.committed(decision)
