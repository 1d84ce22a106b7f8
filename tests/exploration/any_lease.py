"""Controllers under a lease that says anything to anybody at any time: what has to hold without any election.

Two lease stores, a store that forgets, another profile of election, a belief that is hours old: all of it is some way
in which this lease can behave.
"""

from typing import ClassVar, Final

from controlplane.core.election.election import Contender, ElectionState, Holder
from controlplane.core.election.messages import ConfirmationAsked, ElectionEvent
from controlplane.core.values.identifiers import Term
from tests.exploration.turns import Turn

_NOTHING: Final = Contender(Term(0), 0)


class TurnUnderAnyLease(Turn):
    """A turn for which the election is a matter of chance. There are so few terms that the worlds come to an end."""

    terms: ClassVar = (Term(1), Term(2), Term(3))

    def _know(self, _: Term) -> None:
        """Whoever forgets every term must not do harm either."""

    def _elect(self, event: ElectionEvent) -> bool:
        if isinstance(event, ConfirmationAsked) and self._choices.of("confirmed", "not confirmed") == "confirmed":
            return True
        beliefs: dict[str, ElectionState] = {f"holds term {term}": Holder(term, 0, 0, 0) for term in self.terms}
        beliefs["holds nothing"] = _NOTHING
        self.thread = self.thread._replace(election=beliefs[self._choices.of(*beliefs)])
        return False
