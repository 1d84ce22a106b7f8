"""Verifies the load stage: it has to preserve what the first two stages reached, and match the certificate."""

from collections import Counter
from fractions import Fraction

import numpy as np

from controlplane.core.slots.certificate import LoadStage
from controlplane.core.slots.minimal.contract import LoadGoal
from controlplane.core.slots.proof.case import Bands, Case
from controlplane.core.slots.proof.rules import UNKNOWN, Rules, Table


def verify_load(
    goal: LoadGoal, claimed: LoadStage, case: Case, final: Table, bands: Bands, leader_bands: Bands
) -> list[str]:
    """Problems of the load stage of a plan whose first two stages are correct."""
    after = Case(case.rules, case.before, final, case.certificate)
    complaints = [*after.rows(), *after.counts(bands, leader_bands)]
    if complaints:
        return complaints
    moved = int(np.count_nonzero(final.holds & ~case.after.holds))
    changes = int(np.count_nonzero(final.leaders != case.after.leaders))
    if after.crowd() != case.crowd():
        complaints.append(f"load: zone violations go from {case.crowd()} to {after.crowd()}")
    if not moved <= claimed.moved <= goal.most_moves:
        complaints.append(f"load: {moved} replicas moved, {claimed.moved} claimed, {goal.most_moves} allowed")
    if changes != claimed.leader_changes:
        complaints.append(f"load: {changes} leaders changed, but the certificate says {claimed.leader_changes}")
    if int(np.count_nonzero(final.holds.sum(axis=1) != case.after.holds.sum(axis=1))):
        complaints.append("load: a slot has another number of replicas")
    for what, table, level in (("before", case.after, claimed.before), ("after", final, claimed.after)):
        if str(_greatest_level(goal, case.rules, table)) != level:
            complaints.append(f"load: the greatest level {what} is not {level}")
    return complaints


def _greatest_level(goal: LoadGoal, rules: Rules, table: Table) -> Fraction:
    """The greatest load of a node relative to its part of the total by weight."""
    borne: Counter[int] = Counter()
    for slot, leader in zip(table.slots, table.leaders.tolist(), strict=True):
        if leader != UNKNOWN:
            borne[leader] += goal.loads.get(slot.slot_id, 0)
    total, weights = sum(borne.values()), sum(node.weight for node in rules.nodes)
    if not total:
        return Fraction(0)
    return max(Fraction(borne[place] * weights, total * node.weight) for place, node in enumerate(rules.nodes))
