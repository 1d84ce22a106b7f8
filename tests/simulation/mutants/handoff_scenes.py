"""Scripts in which slots and bundles are handed off, and nodes are late, slow, replaced or dead in the middle."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.node import Access
from tests.simulation.invariants.held_requests import HeldRequests
from tests.simulation.invariants.planned_overlap import HASHES
from tests.simulation.network import TABLE
from tests.simulation.script import USUAL, Script, begun

MOVED_SOON: Final = "in a quiet cluster bundles are handed off before the next heartbeats are due"
SERVED_ON: Final = "a bundle that is split is served without a gap"
NAMESPACE: Final = "kv"
_FASTEST_HEARTBEATS_MS: Final = 500
_FOR_EVER_MS: Final = 60_000
"""Longer than any script here."""


def with_bundles(policy: ClusterPolicy = USUAL.policy) -> Script:
    """A cluster with a namespace of eight bundles."""
    script = begun(replace(USUAL, policy=replace(policy, bundles_per_namespace=8)))
    script.ask("namespace", "create_namespace", namespace=NAMESPACE)
    script.go_on_until(lambda: script.answered("namespace"), 1_000)
    script.go_on(500)
    return script


def bundles_of(script: Script, node_id: str) -> list[Bundle]:
    """The bundles that a node owns."""
    return [each for each in script.state.bundles.by_id.values() if each.owner == node_id]


def key_of(bundle: Bundle) -> str:
    """A key in a bundle."""
    return next(key for key, hashed in HASHES.items() if bundle.lower <= hashed < bundle.end)


def led_keys(script: Script, node_id: str) -> list[str]:
    """Keys in slots that a node leads, each in another slot."""
    table = script.world.agents[node_id].table
    assert table is not None
    slots = {table.slot_for(key).slot_id: key for key in HASHES if table.slot_for(key).leader == node_id}
    return list(slots.values())


def step_by_step(script: Script, condition: Callable[[], object], within_ms: int) -> None:
    """Let time pass by the millisecond until something is so."""
    for _ in range(within_ms):
        if condition():
            return
        script.go_on(1)
    raise AssertionError(f"it did not come true within {within_ms} ms")


def bundles_move_in_a_quiet_cluster() -> None:
    """Nothing is to be opened or ended: what takes time is only that nodes say what they have done."""
    script = with_bundles(replace(USUAL.policy, bundle_moves_in_flight=0))
    asked_ms = script.world.scheduler.now_ms
    script.ask("away", "exclude_node", node="n0")
    for _ in range(300):
        script.go_on(10)
        state = script.state
        if script.answered("away") and not (state.bundles.orders or state.bundles.in_flight):
            break
    took_ms = script.world.scheduler.now_ms - asked_ms
    script.verdicts.judge(MOVED_SOON, took_ms <= _FASTEST_HEARTBEATS_MS, f"it takes {took_ms} ms")
    script.go_on(1_000)
    script.judge_end()


def a_leader_reads_no_more_when_it_has_released() -> None:
    """It reads that it has to release slots, and nothing of the next leaders."""
    script = with_bundles()

    def has_read() -> bool:
        table = script.world.agents["n4"].table
        return table is not None and any(row.leader == "n4" and row.next_leader for row in table.slots)

    script.ask("away", "exclude_node", node="n4")
    step_by_step(script, has_read, 1_000)
    script.world.machines["n4"].network.hold_back(TABLE)
    script.go_on(3_000)
    script.world.machines["n4"].network.let_through(TABLE)
    script.go_on(2_000)
    script.judge_end()


def an_owner_reads_nothing_of_its_release() -> None:
    """Its heartbeats arrive. It is waited for until it has certainly stopped, and no longer."""
    script = with_bundles()
    script.go_on(12_000)
    script.world.machines["n4"].network.hold_back(TABLE)
    script.ask("away", "exclude_node", node="n4")
    script.go_on(17_000)
    script.world.machines["n4"].network.let_through(TABLE)
    script.go_on(2_000)
    script.judge_end()


def a_bundle_leaves_and_comes_back_unseen() -> None:
    """Its owner reads nothing meanwhile; then it reads the last row only, because the table was compacted."""
    script = with_bundles()
    (bundle,) = bundles_of(script, "n4")
    script.world.machines["n4"].network.hold_back(TABLE)
    script.ask("away", "transfer_bundles", bundles=bundle.bundle_id, node="n0")
    script.go_on_until(lambda: bundle.bundle_id in {each.bundle_id for each in bundles_of(script, "n0")}, 15_000)
    script.ask("back", "transfer_bundles", bundles=bundle.bundle_id, node="n4")
    script.go_on_until(lambda: script.state.bundles.by_id[bundle.bundle_id].next_owner == "n4", 2_000)
    script.go_on(500)
    script.world.compact_table(drop_tombstones=False)
    script.world.machines["n4"].network.let_through(TABLE)
    script.go_on(4_000)
    script.judge_end()


def requests_outlast_a_release() -> None:
    """Two of them end within the limit; two never do, and lose their right when they were waited for long enough."""
    script = with_bundles()
    requests = HeldRequests(script.world, script.verdicts)
    keys = led_keys(script, "n0")
    first, second = bundles_of(script, "n0")
    ending = [requests.hold("n0", keys[0]), requests.hold("n0", key_of(first), NAMESPACE)]
    requests.hold("n0", keys[1])
    requests.hold("n0", key_of(second), NAMESPACE)
    script.ask("away", "exclude_node", node="n0")
    for step in range(400):
        script.go_on(10)
        requests.look()
        if step == 100:
            for request in ending:
                requests.end(request)
    script.go_on(6_500)
    script.judge_end()


def a_release_is_taken_back_and_asked_for_again() -> None:
    """The leader says that it has released the slot when the first one was taken back; of the second it says nothing.

    It reads of neither, so that it says nothing else in between.
    """
    script = with_bundles()
    requests = HeldRequests(script.world, script.verdicts)
    (key, *_) = led_keys(script, "n4")
    request, slot_id = requests.hold("n4", key), _slot_of(script, key)
    network = script.world.machines["n4"].network
    script.ask("away", "exclude_node", node="n4")
    script.go_on_until(lambda: _is_released(script, slot_id), 1_000)
    script.go_on(50)
    network.hold_back(TABLE)
    script.ask("pause", "pause_reconciliation")
    step_by_step(script, lambda: script.answered("pause"), 500)
    requests.end(request)
    script.go_on(20)
    script.ask("resume", "resume_reconciliation")
    script.go_on(500)
    network.let_through(TABLE)
    script.go_on(1_500)
    script.ask("back", "include_node", node="n4")
    script.go_on(2_000)
    script.judge_end()


def _slot_of(script: Script, key: str) -> int:
    table = script.world.agents["n4"].table
    assert table is not None
    return table.slot_for(key).slot_id


def _is_released(script: Script, slot_id: int) -> bool:
    handoff = script.state.slots.handoffs.get(slot_id)
    return handoff is not None and handoff.releases


def a_release_is_taken_back() -> None:
    """A request holds it up, and the node is included again before that ends."""
    script = with_bundles()
    requests = HeldRequests(script.world, script.verdicts)
    held = [requests.hold("n4", key) for key in led_keys(script, "n4")]
    slot_ids = [_slot_of(script, request.key) for request in held]
    script.ask("away", "exclude_node", node="n4")
    script.go_on_until(lambda: all(_is_released(script, each) for each in slot_ids), 1_000)
    script.go_on(100)
    script.ask("back", "include_node", node="n4")
    script.go_on(500)
    for request in held:
        requests.end(request)
    script.go_on(2_000)
    script.judge_end()


def a_process_is_replaced_and_relieved() -> None:
    """The former process reads nothing of that, and serves on; the new one says at once that it has released all."""
    script = with_bundles()
    network = script.world.machines["n4"].network
    former = script.state.membership.nodes["n4"].process_id
    network.hold_back(TABLE)
    script.world.start_node("n4", second_machine="n4-again")
    script.go_on_until(lambda: script.state.membership.nodes["n4"].process_id != former, 3_000)
    script.go_on(300)
    script.ask("away", "exclude_node", node="n4")
    script.go_on(3_000)
    network.let_through(TABLE)
    script.ask("back", "include_node", node="n4")
    script.go_on(4_000)
    script.judge_end()


def services_take_their_time() -> None:
    """Slots are copied, bundles are closed and opened, while a node drains."""
    script = with_bundles()
    for service in script.world.services.values():
        service.copying_ms, service.opening_ms, service.closing_ms = 1_500, 300, 800
    script.ask("away", "drain_node", node="n0")
    script.go_on(4_000)
    script.ask("back", "undrain_node", node="n0")
    script.go_on(4_000)
    script.judge_end()


def a_service_does_not_close_its_bundles() -> None:
    """It hangs; its agent says after a while that they are released."""
    script = with_bundles()
    script.world.services["n0"].closing_ms = _FOR_EVER_MS
    script.ask("away", "exclude_node", node="n0")
    script.go_on(11_000)
    script.judge_end()


def let_bundle_wait_for_its_next_owner() -> Script:
    """Let n3 have three seconds to open a bundle, and not open it."""
    script = with_bundles(replace(USUAL.policy, handoff_limit_ms=3_000))
    script.world.services["n3"].opening_ms = _FOR_EVER_MS
    (bundle,) = bundles_of(script, "n4")
    script.go_on(3_000)
    script.ask("away", "transfer_bundles", bundles=bundle.bundle_id, node="n3")
    script.go_on_until(lambda: script.state.bundles.by_id[bundle.bundle_id].state is OwnershipState.ASSIGNING, 1_000)
    return script


def a_next_owner_does_not_open_a_bundle() -> None:
    """It has its time for it; then another node is chosen."""
    script = let_bundle_wait_for_its_next_owner()
    script.go_on(6_000)
    script.judge_end()


def a_next_owner_dies() -> None:
    """Before it has opened the bundle. Another node is chosen as soon as it is taken for dead."""
    script = let_bundle_wait_for_its_next_owner()
    script.go_on(300)
    script.world.kill("n3")
    script.go_on(4_000)
    script.world.start_node("n3")
    script.go_on(3_000)
    script.judge_end()


def an_owner_finds_no_bounds() -> None:
    """It hangs over its topics. The split is given up, and the bundle stays whole and with it."""
    script = with_bundles(replace(USUAL.policy, handoff_limit_ms=3_000))
    script.world.services["n4"].dividing_ms = _FOR_EVER_MS
    (bundle,) = bundles_of(script, "n4")
    script.ask("split", "split_bundles", bundles=bundle.bundle_id, by="topic_count_equally_divide")
    script.go_on(6_500)
    script.judge_end()


def a_leader_dies_while_orders_stand() -> None:
    """One bundle is being released, the order for the other one waits for it."""
    script = with_bundles(replace(USUAL.policy, bundle_moves_in_flight=1))
    script.world.services["n0"].closing_ms = 1_000
    script.ask("away", "exclude_node", node="n0")
    script.go_on_until(lambda: script.state.bundles.in_flight, 1_000)
    (leader,) = script.leaders
    script.world.kill(leader)
    script.go_on(6_000)
    script.world.start_controller(leader)
    script.go_on(1_500)
    script.judge_end()


def bundles_are_split() -> None:
    """Under their owners, which have them open; then the parts of one go to another node."""
    script = with_bundles()
    for service in script.world.services.values():
        service.opening_ms = 300
    first, second = bundles_of(script, "n0")
    script.ask("halves", "split_bundles", bundles=first.bundle_id, by="number", numbers="2")
    script.ask("thirds", "split_bundles", bundles=second.bundle_id, by="number", numbers="3")
    for _ in range(80):
        script.go_on(10)
        unserved = [key for key in HASHES if not _is_served(script, key)]
        script.verdicts.judge(SERVED_ON, not unserved, f"nobody accepts {unserved}")
    parts = [each.bundle_id for each in bundles_of(script, "n0") if first.lower <= each.lower < first.end]
    script.verdicts.judge(SERVED_ON, len(parts) == 2, f"n0 owns {parts}")
    script.ask("away", "transfer_bundles", bundles=",".join(parts), node="n1")
    script.go_on(3_000)
    script.judge_end()


def _is_served(script: Script, key: str) -> bool:
    return any(agent.bundle_of(NAMESPACE, key).access is Access.ACCEPT for agent in script.world.agents.values())
