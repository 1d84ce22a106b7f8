"""Changing the policy of a living cluster."""

from collections.abc import Mapping

import pytest

from controlplane.core.cluster.events import PolicyChanged
from controlplane.core.cluster.policy import ClusterPolicy, ZoneRule
from controlplane.core.cluster.rows import TableSettings
from controlplane.core.intents.events import IntentOutcome
from controlplane.core.log.row_changes import rows_of
from controlplane.core.routing.rows import SETTINGS_KEY
from controlplane.core.slots.events import SlotsSplit
from controlplane.core.slots.pins import Exclusion, Pin
from controlplane.core.values.identifiers import Epoch
from tests.helpers.asked_policy import AskedPolicy, asked_policies
from tests.helpers.world import World

DONE, REFUSED = IntentOutcome.DONE, IntentOutcome.REFUSED
NODES = ("n1", "n2", "n3")


def living_world(**policy: object) -> World:
    """A cluster of three nodes."""
    world = World(ClusterPolicy(**{"slot_count": 16, **policy}))  # type: ignore[arg-type]  # by name
    world.admit(*NODES)
    return world


def test_fields_change_in_one_event() -> None:
    """Several fields at once, typed as the policy has them; the settings row and the fingerprint follow."""
    world = living_world()
    answer = world.ask("change_policy", protected_ratio="0.25", zone_rule="hard", silence_limit_ms="4000")
    assert answer.outcome is DONE
    assert "protected_ratio 0.5 -> 0.25" in answer.detail
    policy = world.state.cluster.policy
    assert (policy.protected_ratio, policy.zone_rule, policy.silence_limit_ms) == (0.25, ZoneRule.HARD, 4_000)
    assert sum(isinstance(event, PolicyChanged) for event in world.decisions[-1].events) == 1
    assert world.decisions[-1].policy_fingerprint == policy.fingerprint()
    settings = rows_of(world.state)[SETTINGS_KEY]
    assert isinstance(settings, TableSettings)
    assert settings.silence_limit_ms == 4_000


def test_what_is_so_already_is_not_written() -> None:
    """No event, no epoch."""
    world = living_world()
    epoch = world.state.epoch
    assert world.ask("change_policy", replica_count="2").detail == "the policy says so already"
    assert world.state.epoch == epoch


@pytest.mark.parametrize("count", [1, 3])
def test_replica_count_goes_up_and_down(count: int) -> None:
    """It is planned in the decision that changes it, with its certificate."""
    world = living_world()
    world.ask("change_policy", replica_count=str(count))
    assert {len(slot.replicas) for slot in world.state.slots.table} == {count}
    assert world.decisions[-1].certificate is not None


REFUSALS = {
    "nothing": ({}, "say what to change"),
    "an unknown field": ({"slots": "3"}, "the policy has no field 'slots'; it has slot_count, replica_count"),
    "no number": ({"replica_count": "two"}, "replica_count is 'two', expected a whole number"),
    "no such rule": ({"zone_rule": "strict"}, "zone_rule is 'strict', expected one of ignored, soft, hard"),
    "out of range": ({"replica_count": "9"}, "policy: replica_count is 9, expected 1 to 5"),
    "another hash": ({"hash_function": "md5"}, "hash_function cannot change while the cluster lives"),
    "fewer slots": ({"slot_count": "8"}, "slots can be split, but not joined again"),
    "no power of two": ({"slot_count": "48"}, "slot_count is 48, expected a power of two"),
    "an unknown slot policy": ({"slot_policy": "best"}, "slot policy 'best' is not known here; known are minimal"),
    "an option that it does not have": ({"slot_policy_options.pace": "3"}, "minimal has no options"),
    "options as a whole": ({"slot_policy_options": "pace=3"}, "the policy has no field 'slot_policy_options'"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_change_is_refused(case: str) -> None:
    """With the reason; the policy stays."""
    world = living_world()
    settings, detail = REFUSALS[case]
    before = world.state.cluster.policy
    answer = world.ask("change_policy", **settings)
    assert answer.outcome is REFUSED
    assert detail in answer.detail
    assert world.state.cluster.policy == before


def test_replicas_do_not_fall_below_pins() -> None:
    """A pin that could no longer be kept has to be taken back first."""
    world = living_world()
    world.ask("pin_slots", slots="3", node="n1")
    world.ask("pin_slots", slots="3", node="n2")
    assert world.ask("change_policy", replica_count="1").detail == "slot 3 cannot have 2 pins: replica_count is 1"


def test_slot_policy_changes_with_its_options() -> None:
    """The new policy judges its options, and does not get the former one's."""
    slow, other = AskedPolicy("slow"), AskedPolicy("minimal")
    world = World(slot_policies=asked_policies(slow, other))
    world.admit(*NODES)
    world.ask("change_policy", **{"slot_policy": "slow", "slot_policy_options.pace": "3"})
    assert slow.last.policy.slot_policy_options == {"pace": "3"}
    answer = world.ask("change_policy", **{"slot_policy_options.pice": "3"})
    assert (answer.outcome, answer.detail) == (REFUSED, "slow knows only pace")
    world.ask("change_policy", **{"slot_policy_options.pace": ""})
    assert slow.last.policy.slot_policy_options == {}
    world.ask("change_policy", **{"slot_policy_options.pace": "4"})
    world.ask("change_policy", slot_policy="minimal")
    assert (other.last.policy.slot_policy, other.last.policy.slot_policy_options) == ("minimal", {})


def test_split_slots_begin_where_their_data_is() -> None:
    """Each part has its slot's holders and leader under the decision's epoch; then it is planned from there."""
    policy = AskedPolicy()
    world = World(slot_policies=asked_policies(policy))
    world.admit(*NODES)
    before = world.state.slots.table
    world.ask("change_policy", slot_count="64")
    epoch = Epoch(world.state.epoch)
    (split,) = [event for event in world.decisions[-1].events if isinstance(event, SlotsSplit)]
    assert [slot.slot_id for slot in split.slots] == list(range(16, 64))
    for part in split.slots:
        parent = before[part.slot_id % 16]
        assert (part.leader, part.followers, part.leader_epoch) == (parent.leader, parent.followers, epoch)
    assert policy.last.slots[:16] == before
    assert policy.last.slots[16:] == split.slots
    counts = sorted(len(world.held(name)) for name in NODES)
    assert counts == [42, 43, 43]
    certificate = world.decisions[-1].certificate
    assert certificate is not None
    assert certificate.moved == certificate.least_moved <= 4


def test_orders_on_a_split_slot_hold_for_its_parts() -> None:
    """A replica that had to be somewhere has to be there with all of its data."""
    world = living_world()
    world.ask("pin_slots", slots="3", node="n1", leads="true")
    world.ask("exclude_slots", slots="4", node="n1")
    world.ask("change_policy", slot_count="32")
    assert world.state.slots.pins == (Pin(3, "n1", leads=True), Pin(19, "n1", leads=True))
    assert world.state.slots.exclusions == (Exclusion(4, "n1"), Exclusion(20, "n1"))


def test_split_during_a_pause_moves_nothing() -> None:
    """The parts stay where the slots are until it is resumed."""
    world = living_world()
    world.ask("pause_reconciliation")
    before = world.state.slots.table
    world.ask("change_policy", slot_count="32")
    assert [slot.replicas for slot in world.state.slots.table] == [slot.replicas for slot in before] * 2


def test_slot_policy_that_fails_to_check_its_options_is_refused() -> None:
    """It may be a user's own: whatever it raises, the leader goes on."""

    class Broken(AskedPolicy):
        def check_options(self, options: Mapping[str, str]) -> None:
            """Fail."""
            raise KeyError("pace")

    world = World(slot_policies=asked_policies(AskedPolicy(), Broken("broken")))
    answer = world.ask("change_policy", slot_policy="broken")
    assert (answer.outcome, world.state.cluster.policy.slot_policy) == (REFUSED, "minimal")
    assert "failed to check its options" in answer.detail
