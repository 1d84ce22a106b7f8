"""The decision that writes a damaged table again: it changes nothing else, and can be taken again and verified."""

import pytest

from controlplane.config import HEARTBEATS
from controlplane.core.audit.log_audit import LogAudit, retake
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.deciding.decide import repair_table
from controlplane.core.intents.events import IntentAnswered
from controlplane.core.log.decision import CauseKind
from controlplane.core.slots.policies.sofa import POLICY_NAME as SOFA
from controlplane.core.verification.log_verification import LogVerification
from tests.helpers.world import World

EVIDENCE = "1 keys hold what no leader wrote: 'main/slot/3'"


@pytest.mark.parametrize("slot_policy", ["minimal", SOFA])
def test_a_repair_raises_the_epoch_and_changes_nothing_else(slot_policy: str) -> None:
    """Every slot policy leaves it alone: to the arranger of SOFARegistry it is no refresh."""
    world = World(ClusterPolicy(slot_count=16, slot_policy=slot_policy))
    world.admit("n1", "n2")
    before = world.state
    world.tick()
    world.observe()
    sealed = repair_table(before, world.observations, EVIDENCE)
    world.commit(sealed)
    assert sealed.republish
    assert (sealed.decision.epoch, sealed.decision.events) == (before.epoch + 1, ())
    (cause,) = sealed.decision.causes
    assert (cause.kind, cause.subject, cause.evidence) == (CauseKind.TABLE_REPUBLISHED, before.leader, EVIDENCE)
    assert world.state.slots is before.slots
    assert world.state.decided_at_ms > before.decided_at_ms
    world.admit("n3")
    verification = LogVerification()
    assert [each for decision in world.decisions for each in verification.check(decision)] == []


def test_a_repair_takes_up_no_input() -> None:
    """What was read and not yet decided is decided next, by this leader or by another one."""
    world = World(ClusterPolicy(slot_count=16))
    world.admit("n1")
    world.intent("later", "create_namespace", namespace="kv")
    world.tick()
    world.observe()
    before = world.state
    sealed = repair_table(before, world.observations, EVIDENCE)
    world.commit(sealed)
    moved = {key for key, offset in sealed.decision.positions.items() if offset != before.positions[key]}
    assert moved
    assert all(key.startswith(HEARTBEATS) for key in moved)
    world.run(1_000, ("n1",))
    answers = [each for decision in world.decisions for each in decision.events if isinstance(each, IntentAnswered)]
    assert [each.intent_id for each in answers] == ["later"]


def test_a_repair_is_taken_again_by_the_audit() -> None:
    """From the state before it, the heartbeats up to its positions, and its evidence."""
    world = World(ClusterPolicy(slot_count=16))
    world.admit("n1")
    world.tick()
    world.observe()
    before, observations = world.state, world.observations
    sealed = repair_table(before, observations, EVIDENCE)
    again = retake(before, sealed.decision, observations)
    assert again is not None
    assert again.decision == sealed.decision
    audit = LogAudit()
    assert [each for decision in world.decisions for each in audit.follow(decision)] == []
    assert audit.retake_next(sealed.decision, observations) == []
