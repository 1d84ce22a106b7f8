"""A cluster without I/O: inputs are appended by hand, the pure core observes and decides, and every step is checked."""

from collections import defaultdict

from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.cluster.policy import FEATURE_LEVEL, ClusterPolicy
from controlplane.core.deciding.decide import Opening, decide, follow_up, open_term
from controlplane.core.deciding.observations import Observations, observe
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.intents.intent import Intent
from controlplane.core.log.apply import apply_decision
from controlplane.core.log.decision import Decision
from controlplane.core.log.draft import SealedDecision
from controlplane.core.log.inputs import DECIDED_TOPICS, InputPayload
from controlplane.core.log.state import State
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.slots.policies import BUILT_IN_POLICIES
from controlplane.core.slots.policy_contract import SlotPolicies
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Coordinates, Epoch, Term, TopicPartition
from controlplane.core.values.inputs import InputRecord, Refusal
from controlplane.core.values.partitioning import partition_of
from controlplane.core.values.positions import position_key
from controlplane.core.verification.invariants import check, check_step

PARTITIONS = 3
START_MS = 1_000_000
INPUT_PLACES = (
    *(TopicPartition(HEARTBEATS, partition) for partition in range(PARTITIONS)),
    *(TopicPartition(topic, 0) for topic in DECIDED_TOPICS),
)


class World:
    """One leader over a log of inputs. Time moves only by :meth:`tick`.

    Attributes:
        standing: partitions of ``heartbeats`` to which nothing can be written for now: no tick, no heartbeat.
        unread: partitions of ``heartbeats`` that the leader cannot read for now; it reads them on later.
        cluster_name: the name of the cluster, which its log holds.
        ahead_ms: by how much the clock of a partition's broker is ahead, by partition of ``heartbeats``.
    """

    cluster_name = "eu"

    def __init__(
        self,
        policy: ClusterPolicy | None = None,
        slot_policies: SlotPolicies = BUILT_IN_POLICIES,
        first_feature_level: int = FEATURE_LEVEL,
    ) -> None:
        """A cluster whose first term is open."""
        self.first_feature_level = first_feature_level
        self.slot_policies = slot_policies
        self.now_ms = START_MS
        self.offsets: dict[tuple[str, int], int] = defaultdict(int)
        self.inputs: list[InputRecord] = []
        self.observed_from = dict.fromkeys(INPUT_PLACES, 0)
        self.observations = Observations(positions=self.observed_from)
        self.refusals: list[Refusal] = []
        self.decisions: list[Decision] = []
        self.principal = "tester"
        self.standing: set[int] = set()
        self.unread: set[int] = set()
        self.ahead_ms: dict[int, int] = {}
        self.state = State()
        self._waiting: list[InputRecord] = []
        first = policy or ClusterPolicy(slot_count=16)
        self.tick(0)
        self.observe()
        self.open_term(Term(1), ("log", first))

    def open_term(
        self,
        term: Term,
        new_log: tuple[str, ClusterPolicy] | None = None,
        *,
        republish: bool = False,
        controller_id: str | None = None,
    ) -> None:
        """A leader begins that has observed everything since ``observed_from``."""
        opening = Opening(new_log, self.first_feature_level, republish, self.observed_from, self.cluster_name)
        self.commit(open_term(self.state, self.observations, term, controller_id or f"c{term}", "test", opening))

    def take_over(self, look_back_ms: int) -> None:
        """A newly started leader takes over. It knows only the heartbeats within its look-back."""
        since_ms = self.now_ms - look_back_ms
        positions = {place: self.state.positions[position_key(place)] for place in INPUT_PLACES}
        for place in INPUT_PLACES:
            if place.topic == HEARTBEATS:
                coordinates = [each.coordinates for each in self.inputs if each.coordinates[:2] == place]
                positions[place] = sum(each.append_time_ms < since_ms for each in coordinates)
        self.observed_from = dict(positions)
        self.observations, self._waiting = Observations(positions=positions), list(self.inputs)
        self.observe()
        self.observations, _ = follow_up(self.state, self.observations)
        self.open_term(Term(self.state.term + 1))

    def append(self, topic: str, partition: int, payload: InputPayload) -> InputRecord:
        """Append an input at the present time."""
        offset = self.offsets[topic, partition]
        self.offsets[topic, partition] += 1
        append_time_ms = self.now_ms + (self.ahead_ms.get(partition, 0) if topic == HEARTBEATS else 0)
        record = InputRecord(Coordinates(topic, partition, offset, append_time_ms), payload, b"raw")
        self.inputs.append(record)
        self._waiting.append(record)
        return record

    def tick(self, elapsed_ms: int = 100, ticking: tuple[str, ...] = ("c1",)) -> None:
        """Let time pass, and let these controllers mark it in every partition."""
        self.now_ms += elapsed_ms
        for partition in sorted(set(range(PARTITIONS)) - self.standing):
            for controller_id in ticking:
                self.append(HEARTBEATS, partition, self.tick_of(controller_id))

    def tick_of(self, controller_id: str) -> Tick:
        """A controller's tick, which names what it has read of the log as the log's feature level has it."""
        if not self.state.cluster.has_several_brokers_rules:
            return Tick(controller_id, self.now_ms)
        return Tick(controller_id, self.now_ms, self.state.seq, self.state.epoch)

    def join(
        self,
        node_id: str,
        incarnation: int = 1,
        weight: int = 1,
        role: NodeRole = NodeRole.DATA,
        zone: str = "",
        process_id: str = "",
        *,
        hands_off: bool = False,
    ) -> None:
        """A node asks to be admitted."""
        addresses = (Address("kv", "localhost", 4000),)
        joined = NodeJoined(
            node_id,
            incarnation,
            role,
            addresses,
            zone,
            weight,
            0,
            "1",
            self.now_ms,
            process_id=process_id,
            hands_off=hands_off,
        )
        self.append(MEMBERSHIP, 0, joined)

    def heartbeat(
        self, node_id: str, incarnation: int = 1, table_epoch: int = 0, role: NodeRole = NodeRole.DATA
    ) -> None:
        """A heartbeat of a node, always in the same partition."""
        beat = self.beat_of(node_id, incarnation, table_epoch, role)
        partition = partition_of(node_id.encode(), PARTITIONS)
        if partition not in self.standing:
            self.append(HEARTBEATS, partition, beat)

    def beat_of(
        self, node_id: str, incarnation: int = 1, table_epoch: int = 0, role: NodeRole = NodeRole.DATA
    ) -> Heartbeat:
        """A heartbeat of a node that is sent now."""
        return Heartbeat(node_id, incarnation, self.now_ms, Epoch(table_epoch), role)

    def leave(self, node_id: str, incarnation: int = 1) -> None:
        """A node asks to be relieved."""
        self.append(MEMBERSHIP, 0, NodeLeaving(node_id, incarnation, "test"))

    def left(self, node_id: str, incarnation: int = 1) -> None:
        """A node has left."""
        self.append(MEMBERSHIP, 0, NodeLeft(node_id, incarnation, "test"))

    def intent(self, intent_id: str, kind: str, **arguments: str) -> None:
        """An operator, :attr:`principal`, sends an intent."""
        self.append(INTENTS, 0, Intent(intent_id, kind, self.principal, arguments))

    def ask(self, kind: str, **arguments: str) -> IntentAnswered:
        """An operator asks for something, and gets the answer."""
        intent_id = f"{kind}-{len(self.inputs)}"
        self.intent(intent_id, kind, **arguments)
        self.tick()
        self.decide()
        return self.answers()[intent_id]

    def answers(self) -> dict[str, IntentAnswered]:
        """The answers so far, by intent."""
        events = [event for decision in self.decisions for event in decision.events]
        return {event.intent_id: event for event in events if isinstance(event, IntentAnswered)}

    def held(self, node_id: str) -> set[int]:
        """The slots of which the table gives a node a replica."""
        return {slot.slot_id for slot in self.state.slots.table if node_id in slot.replicas}

    def observe(self) -> None:
        """Observe the appended records without deciding."""
        unread = {(HEARTBEATS, partition) for partition in self.unread}
        readable = [each for each in self._waiting if each.coordinates[:2] not in unread]
        self._waiting = [each for each in self._waiting if each.coordinates[:2] in unread] if unread else []
        self.observations = observe(self.observations, readable)

    def read_on(self, span_ms: int) -> int:
        """Observe part of the records that could not be read before, and decide. Returns their number."""
        until_ms = self._waiting[0].coordinates.append_time_ms + span_ms
        readable = [each for each in self._waiting if each.coordinates.append_time_ms <= until_ms]
        self._waiting = [each for each in self._waiting if each.coordinates.append_time_ms > until_ms]
        self.observations = observe(self.observations, readable)
        self.decide()
        return len(readable)

    def decide(self) -> Decision | None:
        """Observe the appended records, decide and commit. Every step is checked."""
        self.observe()
        result = decide(self.state, self.observations, self.slot_policies)
        again = decide(self.state, self.observations, self.slot_policies)
        assert result == again, "deciding twice gives two answers"
        self.observations = result.observations
        self.refusals.extend(result.refusals)
        if result.sealed is None:
            return None
        self.commit(result.sealed)
        return result.sealed.decision

    def commit(self, sealed: SealedDecision) -> None:
        """Take a decision over, as the leader and as a standby: both have to get the same state."""
        check_step(self.state, sealed.decision, sealed.state, self.slot_policies)
        followed = apply_decision(self.state, sealed.decision)
        assert followed == sealed.state, "leader and standby differ"
        check(followed, self.slot_policies)
        self.state = followed
        self.decisions.append(sealed.decision)
        self.observations, refused = follow_up(self.state, self.observations)
        self.refusals.extend(refused)

    def run(
        self,
        elapsed_ms: int,
        beating: tuple[str, ...] = (),
        step_ms: int = 100,
        ticking: tuple[str, ...] = ("c1",),
    ) -> list[Decision]:
        """Let time pass; the nodes in ``beating`` send a heartbeat each second. Returns the decisions taken."""
        taken = []
        for at_ms in range(step_ms, elapsed_ms + 1, step_ms):
            if at_ms % 1_000 == 0:
                for node_id in beating:
                    node = self.state.membership.nodes.get(node_id)
                    self.heartbeat(node_id, node.incarnation if node else 1)
            self.tick(step_ms, ticking)
            decision = self.decide()
            if decision is not None:
                taken.append(decision)
        return taken

    def admit(self, *node_ids: str) -> None:
        """Join these nodes and let the linger pass."""
        for node_id in node_ids:
            self.join(node_id)
            self.heartbeat(node_id)
        self.run(self.state.cluster.policy.join_linger_ms + 100)

    def reasons(self) -> list[str]:
        """The reasons of everything refused so far."""
        return [refusal.reason for refusal in self.refusals]
