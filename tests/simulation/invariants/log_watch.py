"""Checks of every decision when it is committed: it continues the log, and its writer may write it."""

from collections import Counter
from collections.abc import Callable

from controlplane.config import DECISIONS
from controlplane.core.cluster.events import TermOpened
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.events import Event
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import ControllerId, Epoch, IntentId, Term
from controlplane.core.verification.invariants import check
from controlplane.errors import ControlPlaneError, InvariantViolationError
from controlplane.ports import RawRecord
from controlplane.topic_reading.decision_stream import DecisionStream
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.world import World

_ALL = 10_000
_WHOLE_CHECK_EVERY = 8

CONTINUES = "decisions continue each other without a gap in seq and epoch"
KEPT = "every committed decision is in the log of every later leader"
ONE_LEADER = "a term has one leader, and nobody commits in another's or in an older one"
POSITIONS = "positions never fall"
ANSWERED_ONCE = "no intent is answered twice"
WHOLE = "the whole state is right"


class LogWatch:
    """Reads the decision log from its beginning, as it grows.

    Attributes:
        state: after the last decision.
        states: at every epoch, after the decision that made it.
        answers: how often each intent was answered.
        happened: the kinds of events so far.
        on_decision: told of each decision, with the state before and after it.
    """

    def __init__(self, world: World, verdicts: Verdicts) -> None:
        """Begins with the first decision."""
        self.state = State()
        self.states: dict[Epoch, State] = {}
        self.answers: Counter[IntentId] = Counter()
        self.happened: set[type[Event]] = set()
        self.on_decision: list[Callable[[State, Decision, State], None]] = []
        self._world = world
        self._verdicts = verdicts
        self._stream = DecisionStream()
        self._topic = world.cluster.topic(DECISIONS)
        self._next_offset = 0
        self._leaders: dict[Term, ControllerId] = {}
        self._seen = 0

    def look(self) -> None:
        """Check the decisions that were committed since the last call, those included that no reader can see yet."""
        (partition,) = self._world.broker.partitions(self._topic)
        decided = partition.decided_offset
        if decided == self._seen:
            return
        self._seen = decided
        found, self._next_offset = partition.read(self._next_offset, _ALL, decided)
        for record in found:
            raw = RawRecord(DECISIONS, 0, record.offset, record.append_time_ms, record.key, record.value)
            decision = self._stream.take(raw)
            if decision is not None:
                self._judge(decision, self._world.authors[record.offset])

    def _judge(self, decision: Decision, author: str) -> None:
        before, judge = self.state, self._verdicts.judge
        judge(KEPT, decision.previous_digest == before.last_digest, f"decision {decision.seq} follows another one")
        try:
            self.state = apply_decision(before, decision)
        except ControlPlaneError as error:
            judge(CONTINUES, holds=False, detail=error)
            return
        judge(CONTINUES, holds=True, detail="")
        self.states.setdefault(self.state.epoch, self.state)
        self._judge_author(before, decision, author)
        fallen = [key for key, offset in before.positions.items() if decision.positions.get(key, -1) < offset]
        judge(POSITIONS, not fallen, f"decision {decision.seq} goes back in {fallen}")
        self.happened.update(map(type, decision.events))
        for event in decision.events:
            if isinstance(event, IntentAnswered):
                self.answers[event.intent_id] += 1
                count = self.answers[event.intent_id]
                judge(ANSWERED_ONCE, count == 1, f"decision {decision.seq} answers {event.intent_id} again")
        if decision.seq % _WHOLE_CHECK_EVERY == 0:
            self.check_whole()
        for told in self.on_decision:
            told(before, decision, self.state)

    def begin_again(self) -> None:
        """The topic was recreated. Its decisions still have to continue the known ones."""
        self._stream = DecisionStream(self.state.log_id)
        self._next_offset = self._seen = 0

    def check_whole(self) -> None:
        """Check everything that holds of a state."""
        try:
            check(self.state)
        except InvariantViolationError as error:
            self._verdicts.judge(WHOLE, holds=False, detail=error)
        else:
            self._verdicts.judge(WHOLE, holds=True, detail="")

    def _judge_author(self, before: State, decision: Decision, author: str) -> None:
        opened = [event for event in decision.events if isinstance(event, TermOpened)]
        expected = before.term < decision.term if opened else before.term == decision.term
        leader = self._leaders.setdefault(decision.term, author)
        holds = expected and leader == author == decision.controller_id
        self._verdicts.judge(
            ONE_LEADER,
            holds,
            f"decision {decision.seq} of term {decision.term} after term {before.term} is {decision.controller_id}'s, "
            f"committed by {author}, and the term is {leader}'s",
        )
