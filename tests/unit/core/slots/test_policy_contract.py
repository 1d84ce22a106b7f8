"""The base of slot policies: what a policy is that says only what it has to say."""

from collections.abc import Mapping

import pytest

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.minimal.contract import PlacementNode
from controlplane.core.slots.policies import check_slot_policy
from controlplane.core.slots.policies.minimal import MinimalPolicy
from controlplane.core.slots.policy_contract import SlotAnswer, SlotBalance, SlotPolicy, SlotRequest
from controlplane.core.slots.reports import SlotReport, SlotStatus
from controlplane.core.slots.table import Slot, without_nodes
from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.core.values.replica_status import ReplicaStatus
from controlplane.errors import ConfigurationError
from controlplane.inspection.table_status import table_status
from tests.helpers.world import World

REPORT = SlotReport((SlotStatus(0, 1, True, ReplicaStatus.HEALTHY, 0),), Epoch(1), 0, 0)
REQUEST = SlotRequest(
    slots=(Slot(0, "a", (), Epoch(1)),),
    nodes=(PlacementNode("a", 1, 0),),
    renewed=frozenset(),
    policy=ClusterPolicy(slot_count=1, replica_count=1, slot_policy="least"),
    epoch=Epoch(2),
    now_ms=0,
    reports={"a": REPORT},
)


class Least(SlotPolicy):
    """Says no more than it has to."""

    name = "least"

    def check_options(self, options: Mapping[str, str]) -> None:
        """Anything goes."""

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """The default policy's rows."""
        return SlotAnswer(MinimalPolicy().plan(request).slots)


class Choosy(Least):
    """Fails at every table."""

    def check_table(self, slots: tuple[Slot, ...], policy: ClusterPolicy) -> None:
        """Fail."""
        raise KeyError(len(slots))


def test_what_a_policy_does_not_say_is_what_most_policies_mean() -> None:
    """It has no interval, leaves nobody dead in the table, lets operators pace it, and goes on from any table."""
    policy = Least()
    assert (policy.interval_ms, policy.dead_may_hold, policy.paces_itself) == (None, False, False)
    check_slot_policy({"least": policy}, REQUEST.policy, REQUEST.slots)
    assert policy.is_in_sync(REQUEST)


def test_what_the_answer_leaves_where_it_is_is_balanced() -> None:
    """Leaders and followers are told apart."""
    policy = Least()
    followed = Slot(0, "a", ("b",), Epoch(1))
    led = Slot(0, "b", (), Epoch(2))
    assert policy.balance(REQUEST, SlotAnswer(())) == SlotBalance(leaders=True, followers=True)
    assert policy.balance(REQUEST, SlotAnswer((followed,))) == SlotBalance(leaders=True, followers=False)
    assert policy.balance(REQUEST, SlotAnswer((led,))) == SlotBalance(leaders=False, followers=False)


def test_the_table_status_knows_such_a_policy() -> None:
    """Nothing is asked of it that it does not have."""
    world = World(ClusterPolicy(slot_count=4, slot_policy="least"), {"least": Least()})
    world.admit("a", "b")
    status = table_status(world.state, world.observations, {"least": Least()})
    assert (status.balance, status.protected, status.refusal) == (SlotBalance(leaders=True, followers=True), False, "")


def test_a_check_of_the_table_that_fails_is_a_refusal() -> None:
    """The user's defect is named as his, not as ours."""
    with pytest.raises(ConfigurationError, match="slot policy 'least' failed to check the table: KeyError"):
        check_slot_policy({"least": Choosy()}, REQUEST.policy, REQUEST.slots)


def test_rows_without_a_node_that_is_gone_are_not_made_anew() -> None:
    """Of very many slots a death concerns a part, and each policy and check asks for the table without the dead."""
    rows = (Slot(SlotId(0), "a", ("b",), Epoch(1)), Slot(SlotId(1), "b", ("c",), Epoch(1)))
    left = without_nodes(rows, {"a"})
    assert left == (Slot(SlotId(0), None, ("b",), Epoch(1)), rows[1])
    assert left[1] is rows[1]
