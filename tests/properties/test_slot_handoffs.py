"""Random histories of joins, deaths, drains, pins, slow copies and silent leaders: handoffs end, and logs verify.

No slot is released to a node that does not have its data, unless the decision says that it moves without them. After
every decision the invariants of states and steps are checked (``World.commit``).
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.draft import SealedDecision
from controlplane.core.slots.events import SlotHandoffsChanged
from controlplane.core.verification.log_verification import LogVerification
from tests.helpers.slot_world import SlotWorld
from tests.properties.handoff_machine import LONG_ENOUGH_MS, NODES, HandoffMachine

SLOTS = 8


class WatchedWorld(SlotWorld):
    """Looks at each release at the moment at which it is decided."""

    def commit(self, sealed: SealedDecision) -> None:
        """A slot is released to a node that has its data, whatever it reported before."""
        super().commit(sealed)
        told = "".join(cause.evidence for cause in sealed.decision.causes)
        for event in sealed.decision.events:
            for each in event.handoffs if isinstance(event, SlotHandoffsChanged) else ():
                known = not each.releases or each.slot_id in self.has[each.next_leader]
                assert known or f"slot {each.slot_id} moves without its data" in told


class SlotHandoffs(HandoffMachine[WatchedWorld]):
    """Operators, nodes and faults, each at any time."""

    @initialize(
        copies=st.sampled_from([1, 2, 3]),
        moves_in_flight=st.sampled_from([0, 1, 3]),
        slot_policy=st.sampled_from(["minimal", "ring", "rendezvous"]),
    )
    def begin(self, copies: int, moves_in_flight: int, slot_policy: str) -> None:
        """Two nodes hold the slots."""
        policy = ClusterPolicy(
            slot_count=SLOTS,
            replica_count=copies,
            moves_in_flight=moves_in_flight,
            slot_policy=slot_policy,
            protected_ratio=1.0,
            copy_limit_ms=5_000,
        )
        self.world = WatchedWorld(policy)
        self.world.start("n1", "n2")

    @precondition(lambda self: self.world.living)
    @rule(pick=st.integers(0, 3), slot=st.integers(0, SLOTS - 1), kind=st.sampled_from(["pin_slots", "unpin_slots"]))
    def pin(self, pick: int, slot: int, kind: str) -> None:
        """An operator pins a slot's leadership, or ends a pin."""
        leads = {"leads": "true"} if kind == "pin_slots" else {}
        self.world.ask(kind, slots=str(slot), node=self.living_node(pick), **leads)

    @rule(kind=st.sampled_from(["pause_reconciliation", "resume_reconciliation", "refresh_table"]))
    def order_table(self, kind: str) -> None:
        """An operator pauses, resumes or refreshes."""
        self.world.ask(kind)

    @rule(node=st.sampled_from(NODES))
    def come_back(self, node: str) -> None:
        """A process that was fenced is admitted again, perhaps while its heartbeats do not arrive yet."""
        known = self.world.state.membership.nodes.get(node)
        if known is not None and not known.lives and known.incarnation == self.world.living.get(node):
            self.world.come_back(node)

    @rule(node=st.sampled_from(NODES), what=st.sampled_from(["copying", "holding", "silent"]))
    def idle(self, node: str, what: str) -> None:
        """A node does not copy, says no more that it has released, or sends no heartbeats; or does so again."""
        names: set[str] = getattr(self.world, what)
        names ^= {node}

    @invariant()
    def shown_rows_are_those_of_the_state_with_handoffs_over_them(self) -> None:
        """A row that is shown has the leader of the state, and at most one follower more."""
        if not hasattr(self, "world"):
            return
        for row in self.world.rows():
            settled = self.world.state.slots.rows[row.slot_id]
            assert row.leader == settled.leader
            assert row.leader_epoch == settled.leader_epoch
            assert len(set(row.followers) - set(settled.followers)) <= 1
            assert row.next_leader is None or row.next_leader in row.followers

    def teardown(self) -> None:
        """When nodes do what they have to, every handoff ends, and the whole log is right."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.copying.clear()
        world.holding.clear()
        world.silent.clear()
        if not world.living:
            world.start("n9")
        world.ask("resume_reconciliation")
        world.go(LONG_ENOUGH_MS)
        assert not world.state.slots.handoffs
        verification = LogVerification()
        assert [complaint for each in world.decisions for complaint in verification.check(each)] == []


SlotHandoffs.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestSlotHandoffs = SlotHandoffs.TestCase
