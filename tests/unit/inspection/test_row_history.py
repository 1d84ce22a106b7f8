"""Why each replica moved: every row that a decision changed, with its cause."""

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.values.identifiers import Seq
from controlplane.inspection.row_history import RowChange, RowHistory
from tests.helpers.world import World


def changes(world: World) -> dict[Seq, tuple[RowChange, ...]]:
    """What each decision changed, by seq."""
    history = RowHistory()
    found = {decision.seq: history.take(decision) for decision in world.decisions}
    assert history.state == world.state
    return found


def causes(found: tuple[RowChange, ...]) -> set[str]:
    """The causes of these rows."""
    return {change.cause for change in found}


def cause_of(world: World, slot_id: int) -> str:
    """Why the last decision changed a slot's row."""
    (cause,) = [each.cause for each in changes(world)[world.state.seq] if each.after.slot_id == slot_id]
    return cause


def test_each_kind_of_reason_is_named() -> None:
    """A join, a drain, a pin, an exclusion, a death and a process that comes back with nothing."""
    world = World(ClusterPolicy(slot_count=16, return_window_ms=0))
    world.admit("n1", "n2")
    world.admit("n3")
    joined = changes(world)[world.state.seq]
    assert causes(joined) <= {"n3 joined", "balance"}
    assert {change.after.slot_id for change in joined if "n3" in change.cause} == world.held("n3")
    slot_id = min(world.held("n3"))
    world.ask("exclude_slots", slots=str(slot_id), node="n3")
    assert "n3 must not hold it" in cause_of(world, slot_id)
    free = min({*range(16)} - world.held("n1"))
    world.ask("pin_slots", slots=str(free), node="n1")
    assert "pinned to n1" in cause_of(world, free)
    world.ask("drain_node", node="n2")
    drained = changes(world)[world.state.seq]
    assert all("n2 drains" in change.cause for change in drained if "n2" in change.before.replicas)
    world.ask("undrain_node", node="n2")
    held = world.held("n2")
    world.run(4_000, ("n1", "n3"))
    (fenced,) = [found for found in changes(world).values() if "n2 was fenced" in causes(found)]
    assert {change.after.slot_id for change in fenced if "n2 was fenced" in change.cause} == held
    world.join("n1", incarnation=9)
    held = world.held("n1")
    world.run(1_000, ("n1", "n3"))
    again = changes(world)[world.state.seq]
    assert {c.after.slot_id for c in again if "n1 came back and holds nothing" in c.cause} == held


def test_what_continues_a_plan_names_it_and_what_it_was_made_for() -> None:
    """Whoever looks at a row does not have to look for the decision that planned it."""
    world = World(ClusterPolicy(slot_count=16, cool_down_ms=1_000))
    world.admit("n1", "n2", "n3")
    world.admit("n4")
    plan = world.state.seq
    assert changes(world)[plan] == ()
    world.run(1_500, ("n1", "n2", "n3", "n4"))
    assert world.held("n4")
    (continued,) = [found for seq, found in changes(world).items() if seq > plan and found]
    assert all(f"plan of decision {plan}: node_joined n4" in change.cause for change in continued)
    assert sum("n4" in change.after.replicas for change in continued) == len(world.held("n4"))


def test_rows_and_numbers_agree() -> None:
    """The replicas that the rows show are those that the decision counts."""
    world = World(ClusterPolicy(slot_count=16))
    world.admit("n1", "n2", "n3")
    world.run(4_000, ("n1", "n2"))
    world.ask("change_policy", slot_count="32")
    history = RowHistory()
    for decision in world.decisions:
        moves = sum(len(set(change.after.replicas) - set(change.before.replicas)) for change in history.take(decision))
        assert moves == decision.moves_carried_out
