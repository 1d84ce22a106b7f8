"""The independent verification of a plan: the table is valid and balanced, and nothing has moved without need.

The verifier shares no code with the planner and solves no optimisation problem. By the duality of linear programming,
any prices give a lower bound on the number of moves to a balanced table. Prices whose bound equals the number of moves
prove that this number is the least. The time grows with slots times possible members of a row, not with slots times
nodes.
"""

from collections.abc import Sequence
from typing import Final

from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.minimal.contract import PlacementProblem
from controlplane.core.slots.proof.case import Case
from controlplane.core.slots.proof.load import verify_load
from controlplane.core.slots.proof.rules import Rules, Table
from controlplane.core.slots.table import Slot

_POLICY_NAME: Final = "minimal"


def verify(problem: PlacementProblem, slots_after: Sequence[Slot], certificate: Certificate) -> list[str]:
    """The problems of a plan, one sentence each; empty if it is accepted.

    Args:
        problem: the problem. Readiness is taken from the certificate, because it is what the planner knew.
        slots_after: the whole table after the plan, by slot id.
        certificate: the proof to verify.
    """
    previous = problem.previous
    if not previous or not _are_of_the_same_slots(previous, slots_after):
        return ["the table after does not have the slots of the table before, in their order"]
    complaints = _names(certificate, problem)
    if complaints:
        return complaints
    rules = Rules.of(problem)
    before = Table.of(previous, rules.places)
    final = before.changed_to(slots_after, rules.places)
    if (problem.load is None) != (certificate.load is None) and rules.nodes:
        return ["certificate: it has a load stage that was not asked for, or none though one was"]
    minimal = final
    if certificate.rows_before_load:
        settled = {slot.slot_id: slot for slot in certificate.rows_before_load}
        minimal = final.changed_to([settled.get(slot.slot_id, slot) for slot in slots_after], rules.places)
    case = Case(rules, before, minimal, certificate)
    complaints = case.rows()
    if complaints:
        return complaints
    try:
        complaints = case.shares()
    except (ValueError, ZeroDivisionError) as error:
        return [f"certificate: its shares are no fractions: {error}"]
    if complaints:
        return complaints
    bands, leader_bands = case.bands()
    complaints = case.counts(bands, leader_bands)
    if complaints:
        return complaints
    complaints = [*case.replica_proof(bands), *case.leader_proof(leader_bands), *case.lost()]
    if problem.load is not None and certificate.load is not None:
        complaints += verify_load(problem.load, certificate.load, case, final, bands, leader_bands)
    return complaints


def _are_of_the_same_slots(before: Sequence[Slot], after: Sequence[Slot]) -> bool:
    return len(before) == len(after) and all(
        old.slot_id == new.slot_id for old, new in zip(before, after, strict=True) if old is not new
    )


def _names(certificate: Certificate, problem: PlacementProblem) -> list[str]:
    """Problems of the nodes that the certificate names, or of numbers that sums could not hold."""
    complaints = []
    # Sums have 64 bits: a greater price could make one overflow to any number.
    greatest = min(1 << 48, (1 << 62) // (len(problem.previous) * (problem.rules.replica_count + 1)))
    prices = [*certificate.node_prices.values(), *certificate.leader_prices.values(), certificate.absence_price]
    if any(abs(price) > greatest for price in prices):
        complaints.append(f"certificate: a price is beyond {greatest:,}, more than any table of this size needs")
    if certificate.policy != _POLICY_NAME:
        complaints.append(f"certificate: policy {certificate.policy!r} is not {_POLICY_NAME!r}")
    everybody = sorted(node.node_id for node in problem.nodes)
    usable = sorted(node.node_id for node in problem.nodes if node.weight)
    for what, numbers, names in (
        ("node prices", certificate.node_prices, everybody),
        ("leader prices", certificate.leader_prices, everybody),
        ("node shares", certificate.node_shares, usable),
        ("leader shares", certificate.leader_shares, usable if certificate.leader_shares else []),
    ):
        if sorted(numbers) != names:
            complaints.append(f"certificate: its {what} do not name the nodes, each once")
    return complaints
