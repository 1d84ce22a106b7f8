"""What nodes show of the slots that they hand off: who takes part, who has the data, who has released a slot."""

from functools import cache

from controlplane.core.deciding.consent import Consents
from controlplane.core.deciding.observations import Observations
from controlplane.core.log.state import State
from controlplane.core.slots.handoffs import Released, Witness
from controlplane.core.slots.policy_contract import SlotRequest
from controlplane.core.slots.reports import slot_ids_of
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId


def witness_of(state: State, observations: Observations, request: SlotRequest) -> Witness:
    """The witness for a plan. What nodes have copied and released is worked out once, when it is asked for."""
    members, consents = state.membership.nodes, Consents(state, observations)
    living = frozenset(name for name in request.living if members[name].hands_off)
    said: dict[NodeId, frozenset[tuple[SlotId, Epoch]]] = {}

    @cache
    def ready() -> frozenset[tuple[SlotId, NodeId]]:
        return request.ready

    def is_ready(slot_id: SlotId, node_id: NodeId, since: Epoch) -> bool:
        report = request.reports.get(node_id)
        return report is not None and report.table_epoch >= since and (slot_id, node_id) in ready()

    def released(slot_id: SlotId, node_id: NodeId, since: Epoch) -> Released | None:
        node = members[node_id]
        if node_id not in said:
            beat = observations.latest_heartbeat(node_id, node.incarnation)
            groups = () if beat is None else beat.released_slots
            said[node_id] = frozenset(
                (each, group.release_epoch) for group in groups for each in slot_ids_of(group.runs)
            )
        says_so = (slot_id, since) in said[node_id]
        why = consents.why_released(node, since, says_so=says_so)
        return Released(why, says_so) if why else None

    def may_release(node_id: NodeId) -> bool:
        return not consents.has_former_process(members[node_id])

    return Witness(living, living & request.survivors, is_ready, may_release, released)
