"""How long the dead may be members and intents without an answer, in virtual time, while a controller is fit to act.

The invariants of :mod:`tests.simulation.invariants.fencing` look at decisions, and see nothing of a leader that makes
none. Here the time is counted in which Kafka and the lease store are whole and a controller is fit: it runs, and its
network and its view of the lease store are whole. A leader that is fit has to act at once. Where every controller that
runs is fit, one of them has to become the leader within a few leases. Where only some are, the leader has to notice
first that it is not fit itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.config import DEAD_LETTERS, HEARTBEATS, MAX_TICK_GAP_MS
from controlplane.core.cluster.events import TermOpened
from controlplane.core.cluster.image import ClusterImage
from controlplane.core.election.steps import ControllerPhase
from controlplane.core.log.decision import Decision
from controlplane.core.log.state import State
from controlplane.core.values.identifiers import NodeId
from tests.helpers.fencing_bounds import COMMIT_MS, SLOWEST_CLOCK, Bounds
from tests.simulation.invariants.log_watch import LogWatch
from tests.simulation.invariants.verdicts import Verdicts
from tests.simulation.machine import MESSAGE_TIMEOUT_MS
from tests.simulation.network import Network
from tests.simulation.setting import CONTROLLERS, LEASE
from tests.simulation.world import World

FENCED_IN_TIME: Final = "a dead node is a member for no longer than its limit, while a leader is fit"
FENCED_AFTER_FAILOVER: Final = (
    "a dead node is a member for no longer than its limit and a failover, while all controllers are fit"
)
FENCED_BY_ANY: Final = "a dead node is a member for no longer than until an unfit leader is replaced"
ANSWERED_IN_TIME: Final = "an intent waits no longer for its answer than a decision takes, while a leader is fit"
ANSWERED_AFTER_FAILOVER: Final = (
    "an intent waits no longer for its answer than a failover takes, while all controllers are fit"
)
ANSWERED_BY_ANY: Final = "an intent waits no longer for its answer than until an unfit leader is replaced"

LOOK_EVERY_MS: Final = 100
FAILOVER_LEASES: Final = 4
FAILOVER_MS: Final = FAILOVER_LEASES * LEASE.duration_ms
"""A lease expires, and the first that take over may fail: faults overlap here."""
REPLACEMENT_MS: Final = Bounds(lease=LEASE).cut_off_noticed_ms + FAILOVER_MS
"""A leader that Kafka does not answer about a partition needs the longest to notice that it is not fit."""
_SLACK_MS: Final = 2 * COMMIT_MS
"""For deciding, committing and reading, which no setting bounds, beside the work that other faults cause."""
_ANSWER_MS: Final = MESSAGE_TIMEOUT_MS + _SLACK_MS
"""An intent behind a refused one waits for the dead letter of that one. A letter whose acknowledgement is lost is sent
again when it is given up."""


def detected_within_ms(cluster: ClusterImage) -> int:
    """The longest time for which a dead node may be a member, whatever other faults there are, while a leader is fit.

    That of nodes that die together, by a broker's clock that is a tenth slow, and with the longest gaps between ticks.
    """
    bound_ms = Bounds(cluster=cluster, tick_ms=MAX_TICK_GAP_MS).further_detection_ms - COMMIT_MS
    return int(bound_ms / SLOWEST_CLOCK) + _SLACK_MS


@dataclass
class _Waiting:
    """How long something has waited, by what counts: the time of one leader, of all, and of any fit controller."""

    since: tuple[object, ...] | None = None
    leader: str = ""
    with_leader_ms: int = 0
    with_all_ms: int = 0
    with_any_ms: int = 0

    def count(self, fit: "_Fit") -> None:
        """Another look has passed."""
        if fit.leader != self.leader:
            self.leader, self.with_leader_ms = fit.leader, 0
        self.with_leader_ms += LOOK_EVERY_MS if fit.leader else 0
        self.with_all_ms += LOOK_EVERY_MS if fit.are_all else 0
        self.with_any_ms += LOOK_EVERY_MS if fit.is_any else 0


class _Fit(NamedTuple):
    """Which controllers are fit now.

    Attributes:
        leader: the one that leads, if it is fit.
        are_all: whether every one that runs is, and one runs.
        is_any: whether one is.
    """

    leader: str
    are_all: bool
    is_any: bool


@dataclass
class BoundsWatch:
    """Counts at intervals.

    Attributes:
        is_whole: whether Kafka and the lease store have no fault now.
    """

    world: World
    log: LogWatch
    verdicts: Verdicts
    is_whole: Callable[[], bool] = lambda: True
    _dead: dict[NodeId, _Waiting] = field(default_factory=dict)
    _asked: dict[str, _Waiting] = field(default_factory=dict)
    _last_beats: dict[NodeId, tuple[int, int]] = field(default_factory=dict)
    _read_to: dict[int, int] = field(default_factory=dict)
    _begun: int = 0

    def see(self, before: State, decision: Decision, _after: State) -> None:
        """A leader that had to begin without what others have observed may count from there."""
        self._begun += any(isinstance(event, TermOpened) for event in decision.events)
        if before.cluster.policy != _after.cluster.policy:
            self._dead.clear()  # another limit holds, or has to settle

    def look(self) -> None:
        """Count the time since the last look."""
        self._read_heartbeats()
        fit = self._fit()
        self._judge_dead(fit)
        self._judge_intents(fit)

    def _judge_dead(self, fit: _Fit) -> None:
        state = self.log.state
        if state.membership.evictions_frozen:
            self._dead.clear()
            return
        bound_ms = detected_within_ms(state.cluster)
        dead = {name: node for name, node in state.membership.nodes.items() if node.lives and self._is_dead(name)}
        for name in self._dead.keys() - dead.keys():
            del self._dead[name]
        for name, node in dead.items():
            since = node.incarnation, self._last_beats.get(name), len(self._read_to), self._begun
            waiting = self._dead.setdefault(name, _Waiting(since))
            if waiting.since != since:
                # Before it was heard, admitted, or another leader came, it was not due.
                is_same = waiting.since is not None and waiting.since[:3] == since[:3]
                former = waiting if is_same else _Waiting()
                waiting = _Waiting(since, with_all_ms=former.with_all_ms, with_any_ms=former.with_any_ms)
                self._dead[name] = waiting
            waiting.count(fit)
            by = FENCED_IN_TIME, FENCED_AFTER_FAILOVER, FENCED_BY_ANY
            self._judge(by, waiting, bound_ms, f"{name} is dead and {node.status.value}")

    def _judge_intents(self, fit: _Fit) -> None:
        if not self.world.has_leader(DEAD_LETTERS, 0):
            # What stands behind a refused intent waits for its dead letter, by design.
            self._asked.clear()
            return
        open_intents = self.world.intents_sent - self.log.answers.keys()
        for intent_id in self._asked.keys() - open_intents:
            del self._asked[intent_id]
        for intent_id in sorted(open_intents):
            waiting = self._asked.setdefault(intent_id, _Waiting())
            waiting.count(fit)
            by = ANSWERED_IN_TIME, ANSWERED_AFTER_FAILOVER, ANSWERED_BY_ANY
            self._judge(by, waiting, _ANSWER_MS, f"{intent_id} has no answer")

    def _judge(self, invariants: tuple[str, str, str], waiting: _Waiting, bound_ms: int, what: str) -> None:
        """Judge what has waited, with a fit leader, with all fit and with any: each may take its own time more."""
        waited_ms = waiting.with_leader_ms, waiting.with_all_ms, waiting.with_any_ms
        most_ms = bound_ms, bound_ms + FAILOVER_MS, bound_ms + REPLACEMENT_MS
        for invariant, waited, most in zip(invariants, waited_ms, most_ms, strict=True):
            self.verdicts.judge(
                invariant, waited <= most, f"{what} after {waited} ms, {most} at most; leader {waiting.leader!r}"
            )

    @property
    def leader_is_fit(self) -> bool:
        """Whether a controller leads that is fit, so that time counts."""
        return bool(self._fit().leader)

    def last_beat(self, name: NodeId) -> tuple[int, int]:
        """Partition and offset of the last record with the key of a node; (0, -1) if there is none."""
        self._read_heartbeats()
        return self._last_beats.get(name, (0, -1))

    def _is_dead(self, name: NodeId) -> bool:
        """Whether no process of the node runs any more."""
        ran = [machine for place, machine in self.world.machines.items() if place.removesuffix("-again") == name]
        return bool(ran) and all(machine.process.dead for machine in ran)

    def _fit(self) -> _Fit:
        if not self.is_whole():
            return _Fit("", are_all=False, is_any=False)
        running = [name for name in CONTROLLERS if name in self.world.running]
        fit = list(self._fit_controllers())
        leading = (name for name in fit if self.world.running[name].controller.phase is ControllerPhase.LEADING)
        return _Fit(next(leading, ""), are_all=bool(fit) and fit == running, is_any=bool(fit))

    def _fit_controllers(self) -> Iterator[str]:
        for name in CONTROLLERS:
            machine = self.world.machines.get(name)
            if machine is None or name not in self.world.running or not machine.runs:
                continue
            if machine.network == Network() and machine.leases is self.world.leases:
                yield name

    def _read_heartbeats(self) -> None:
        """Note the last record of each key: a dead node's may arrive late, or twice."""
        for number, partition in enumerate(self.world.broker.partitions(self.world.cluster.topic(HEARTBEATS))):
            read_to = self._read_to.get(number, 0)
            for record in partition.read(read_to, partition.end_offset - read_to).records:
                self._last_beats[(record.key or b"").decode(errors="replace")] = number, record.offset
            self._read_to[number] = partition.end_offset
