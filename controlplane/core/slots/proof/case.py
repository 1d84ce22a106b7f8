"""One plan under verification: its rules, the table before and after it, and its problems, part by part."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from operator import ne
from typing import TypeAlias

import numpy as np

from controlplane.core.cluster.policy import ZoneRule
from controlplane.core.slots.certificate import Certificate
from controlplane.core.slots.proof.bound import FORBIDDEN, cheapest_rows
from controlplane.core.slots.proof.rules import UNKNOWN, Matrix, Rules, Table, Vector, count_by_zone
from controlplane.core.slots.proof.shares import NOBODY, AlikeSlots, Limits, prove_shares
from controlplane.core.values.identifiers import NodeId, SlotId

Bands: TypeAlias = Mapping[NodeId, tuple[int, int]]
"""The least and the greatest number of units of each node."""


@dataclass(frozen=True)
class Case:
    """One plan under verification; derived values are computed once."""

    rules: Rules
    before: Table
    after: Table
    certificate: Certificate

    @cached_property
    def level(self) -> int:
        """Number of replicas of a slot that can have as many as it asks for, if there is room."""
        return self.rules.level(self.after.sizes)

    @cached_property
    def units(self) -> Vector:
        """Number of replicas that each slot has to have, if there is room."""
        return np.maximum(np.minimum(self.rules.possible, self.level), self.rules.pinned_counts)

    @cached_property
    def absences(self) -> Vector:
        """Number of replicas that each slot has less than ``units``."""
        return self.units - self.after.sizes

    @cached_property
    def held(self) -> list[int]:
        """Number of replicas of each node."""
        held: list[int] = np.bincount(self.after.cells[1], minlength=len(self.rules.nodes)).tolist()
        return held

    @cached_property
    def node_shares(self) -> Mapping[NodeId, Fraction]:
        """The claimed shares of replicas."""
        return {name: Fraction(text) for name, text in self.certificate.node_shares.items()}

    @cached_property
    def leader_shares(self) -> Mapping[NodeId, Fraction]:
        """The claimed shares of leaderships; empty if they follow from those of replicas."""
        return {name: Fraction(text) for name, text in self.certificate.leader_shares.items()}

    def rows(self) -> list[str]:
        """Problems of single rows."""
        rules, before, after = self.rules, self.before, self.after
        wrong = (after.sizes != after.held_sizes) | after.disordered
        wrong |= (after.leaders == UNKNOWN) & (after.sizes > 0)
        wrong |= (self.absences < 0) | (self.absences > (rules.possible >= self.level))
        if rules.eligible is not None:
            wrong |= (after.holds & ~rules.eligible).any(axis=1)
        if rules.problem.rules.zone_rule is ZoneRule.HARD:
            wrong |= (self._zone_counts > rules.zone_limits).any(axis=1)
        led_by_others = self._leader_changed
        wrong |= np.where(
            led_by_others,
            after.leader_epochs <= before.leader_epochs,
            after.leader_epochs != before.leader_epochs,
        )
        for slot_id in rules.pins:
            wrong[self._row_of[slot_id]] = True
        return [sentence for row in np.flatnonzero(wrong).tolist() for sentence in self._row(row)]

    @cached_property
    def _row_of(self) -> Mapping[SlotId, int]:
        """Slot ids to rows; the table may lack some slots."""
        return {slot.slot_id: row for row, slot in enumerate(self.after.slots)}

    @cached_property
    def _leader_changed(self) -> Matrix:
        """Whether each slot has another leader than before."""
        return np.fromiter(map(ne, self.before.names, self.after.names), np.bool_, len(self.after.slots))

    @cached_property
    def _zone_counts(self) -> Vector:
        """Number of replicas of each slot in each zone."""
        zones, limits = self.rules.zones, self.rules.zone_limits
        return count_by_zone(self.after.holds, zones, len(limits))

    def _row(self, row: int) -> list[str]:
        rules, old, new = self.rules, self.before.slots[row], self.after.slots[row]
        holders, where = new.replicas, f"slot {new.slot_id}"
        pinned, pinned_leader = rules.pins.get(new.slot_id, (frozenset(), None))
        barred = rules.eligible is not None and [
            name for name in holders if name in rules.places and not rules.eligible[row, rules.places[name]]
        ]
        found = [
            (len(set(holders)) < len(holders), f"a node holds it twice: {', '.join(holders)}"),
            *((name not in rules.places, f"{name} is no node that may hold it") for name in holders),
            (barred, f"{barred} are excluded from it"),
            (new.leader is None and holders, "it has holders and no leader"),
            (list(new.followers) != sorted(new.followers), "its followers are not sorted"),
            (not pinned <= set(holders), f"it is pinned to {', '.join(sorted(pinned))}"),
            (pinned_leader not in (None, new.leader), f"{pinned_leader} is pinned to lead it"),
            (
                new.leader == old.leader and new.leader_epoch != old.leader_epoch,
                "its leader epoch changed though its leader did not",
            ),
            (
                new.leader != old.leader and new.leader_epoch <= old.leader_epoch,
                "its leader changed but its leader epoch did not rise",
            ),
        ]
        sentences = [f"{where}: {sentence}" for wrong, sentence in found if wrong]
        units, absence = int(self.units[row]), int(self.absences[row])
        least = units - (int(rules.possible[row]) >= self.level)
        if not least <= len(holders) <= units or absence < 0:
            sentences.append(f"{where}: {len(holders)} replicas, not {least} to {units}")
        if rules.problem.rules.zone_rule is ZoneRule.HARD and (self._zone_counts[row] > rules.zone_limits).any():
            sentences.append(f"{where}: a zone holds more than {rules.problem.rules.replicas_per_zone} replicas")
        return sentences

    def shares(self) -> list[str]:
        """Problems of the claimed shares of replicas and of leaderships."""
        rules, problem = self.rules, self.rules.problem
        slot_count = len(problem.previous)
        shares = dict(self.node_shares)
        zones = {node.node_id: str(rules.zones[place]) for place, node in enumerate(rules.nodes)}
        capacities = {node.node_id: min(node.capacity or slot_count, slot_count) for node in rules.nodes}
        hard = problem.rules.zone_rule is ZoneRule.HARD
        limits = {
            str(zone): int(limit) if hard else len(rules.nodes) + 1 for zone, limit in enumerate(rules.zone_limits)
        }
        limits["0"] = len(rules.nodes) + 1
        absent = int(self.absences.sum())
        if absent:
            shares[NOBODY] = Fraction(absent)
            capacities[NOBODY], zones[NOBODY] = absent, "0"
        weights = {node.node_id: Fraction(node.weight) for node in rules.nodes}
        complaints = prove_shares(
            "replicas", self._alike(with_nobody=absent > 0), Limits(capacities, zones, limits), weights, shares
        )
        return complaints or self._leader_shares()

    def _alike(self, *, with_nobody: bool) -> list[AlikeSlots]:
        """Slots grouped by the nodes that may hold them and those that have to."""
        rules, after, names = self.rules, self.after, [node.node_id for node in self.rules.nodes]
        kinds, first = self._kinds()
        rows, places = after.cells
        held = np.bincount(kinds[rows] * len(names) + places, minlength=len(first) * len(names))
        absent = np.bincount(kinds, weights=self.absences).astype(np.int64).tolist()  # floats, exact if small
        groups = []
        for kind, (size, row) in enumerate(zip(np.bincount(kinds).tolist(), first, strict=True)):
            eligible = set(names)
            if rules.eligible is not None:
                eligible = {name for name, may in zip(names, rules.eligible[row].tolist(), strict=True) if may}
            counts = held[kind * len(names) : (kind + 1) * len(names)].tolist()
            of_each = dict(zip(names, counts, strict=True))
            if with_nobody and rules.possible[row] >= self.level:
                eligible.add(NOBODY)
                of_each[NOBODY] = absent[kind]
            pinned = rules.pins.get(after.slots[row].slot_id, (frozenset(), None))[0]
            groups.append(AlikeSlots(size, frozenset(eligible), pinned, of_each))
        return groups

    def _kinds(self) -> tuple[Vector, list[int]]:
        """The kind of each slot, equal if the same nodes may and must hold it, and the first row of each kind."""
        rules, slots = self.rules, self.after.slots
        if rules.eligible is None and not rules.pins:
            return np.zeros(len(slots), np.int64), [0]
        found: dict[tuple[bytes, frozenset[NodeId]], int] = {}
        kinds = np.zeros(len(slots), np.int64)
        first: list[int] = []
        for row, slot in enumerate(slots):
            pattern = b"" if rules.eligible is None else rules.eligible[row].tobytes()
            pinned = rules.pins.get(slot.slot_id, (frozenset(), None))[0]
            kinds[row] = kind = found.setdefault((pattern, pinned), len(found))
            if kind == len(first):
                first.append(row)
        return kinds, first

    def _leader_shares(self) -> list[str]:
        rules, after = self.rules, self.after
        follow = not self.absences.any() and len(set(np.unique(self.units).tolist()) - {0}) == 1
        follow = follow and not any(leader for _, leader in rules.pins.values())
        if follow or not self.certificate.leader_shares:
            needed = not follow and bool(rules.nodes)
            wrong = needed or bool(self.certificate.leader_shares)
            return ["certificate: shares of leaderships where they follow, or none where they do not"] if wrong else []
        names = [node.node_id for node in rules.nodes]
        found: dict[tuple[bytes, NodeId | None], list[int]] = {}
        for row, slot in enumerate(after.slots):
            if after.sizes[row]:
                pinned = rules.pins.get(slot.slot_id, (frozenset(), None))[1]
                found.setdefault((after.holds[row].tobytes(), pinned), []).append(row)
        groups = []
        for (_, pinned), rows in found.items():
            eligible = frozenset(names[place] for place in np.flatnonzero(after.holds[rows[0]]).tolist())
            led = Counter(names[place] for place in after.leaders[rows].tolist())
            groups.append(AlikeSlots(len(rows), eligible, frozenset({pinned} if pinned else ()), led))
        weights = {name: share or Fraction(1) for name, share in self.node_shares.items()}
        held = dict(zip(names, self.held, strict=True))
        limits = Limits(held, dict.fromkeys(names, ""), {"": len(names) + 1})
        return prove_shares("leaderships", groups, limits, weights, self.leader_shares)

    def bands(self) -> tuple[Bands, Bands]:
        """The bounds of each node's replicas and of its leaderships."""
        rules, after = self.rules, self.after
        tolerance = rules.problem.rules.tolerance_percent
        units = int(self.units.max(initial=1)) or 1
        pinned = Counter(name for names, _ in rules.pins.values() for name in names)
        pinned_leaders = Counter(leader for _, leader in rules.pins.values() if leader)
        may_hold = np.full(len(rules.nodes), int((self.units > 0).sum()))
        if rules.eligible is not None:
            may_hold = rules.eligible[self.units > 0].sum(axis=0)
        held = self.held
        leader_shares = self.leader_shares or {name: share / units for name, share in self.node_shares.items()}
        replicas, leaders = {}, {}
        for place, node in enumerate(rules.nodes):
            name = node.node_id
            room = min(int(may_hold[place]), node.capacity or len(after.slots))
            replicas[name] = _band(self.node_shares[name], tolerance, pinned[name], room)
            leaders[name] = _band(leader_shares[name], tolerance, pinned_leaders[name], held[place])
        return replicas, leaders

    def counts(self, replicas: Bands, leaders: Bands) -> list[str]:
        """Counts of replicas and leaderships that are outside their bands."""
        held = self.held
        led = np.bincount(self.after.leaders[self.after.leaders != UNKNOWN], minlength=len(held)).tolist()
        return [
            f"node {name}: {count[self.rules.places[name]]} {what}, not {least} to {most}"
            for what, count, bounds in (("replicas", held, replicas), ("leaderships", led, leaders))
            for name, (least, most) in sorted(bounds.items())
            if not least <= count[self.rules.places[name]] <= most
        ]

    def crowd(self) -> int:
        """Number of replicas above the limits of soft zones."""
        if self.rules.problem.rules.zone_rule is not ZoneRule.SOFT:
            return 0
        return int(np.maximum(self._zone_counts - self.rules.zone_limits, 0).sum())

    def replica_proof(self, bands: Bands) -> list[str]:
        """Problems of the proof of violations and moves by prices."""
        rules, certificate = self.rules, self.certificate
        prices = np.array([certificate.node_prices[node.node_id] for node in rules.nodes], np.int64)
        absent = int(self.absences.sum())
        violation = len(self.after.slots) * rules.problem.rules.replica_count + 1
        moved = int((self.after.holds & ~self.before.holds).sum())
        crowd = self.crowd()
        rows = cheapest_rows(rules, self.before.holds, self.units, prices, violation, self._absence(absent))
        bound = int(rows.sum()) - _worth(certificate.node_prices, bands)
        bound -= absent * certificate.absence_price
        complaints = _compare("replicas moved", moved, certificate.moved, certificate.least_moved)
        if crowd != certificate.zone_violations:
            complaints.append(f"zone violations: {crowd}, but the certificate says {certificate.zone_violations}")
        paid = violation * crowd + moved + absent
        if paid != bound:
            least = bound - absent - violation * crowd
            complaints.append(f"replicas moved: {moved}, but the prices prove only {least}")
        return complaints

    def _absence(self, absent: int) -> Vector | None:
        """For each slot, the cost of having one replica less; None if no slot has one less."""
        if not absent:
            return None
        spare = self.rules.possible >= self.level
        return np.where(spare, 1 + self.certificate.absence_price, FORBIDDEN)

    def leader_proof(self, bands: Bands) -> list[str]:
        """Problems of the proof of leader changes by prices, given the holders of each slot.

        A change costs 1. Passing over every heir of a slot whose leader is gone costs more than changing the leaders of
        all slots.
        """
        rules, before, after = self.rules, self.before, self.after
        prices = np.array([self.certificate.leader_prices[node.node_id] for node in rules.nodes], np.int64)
        changed = self._leader_changed
        orphaned = np.flatnonzero(before.leaders == UNKNOWN)
        heirs = np.zeros_like(after.holds)
        heirs[orphaned] = after.holds[orphaned] & before.holds[orphaned]
        complaints = self._narrow(heirs)
        rows, places = after.cells
        has_heirs = np.zeros(len(heirs), np.bool_)
        has_heirs[orphaned] = heirs[orphaned].any(axis=1)
        costs = (places != before.leaders[rows]).astype(np.int64)
        costs += (len(after.slots) + 1) * (has_heirs[rows] & ~heirs[rows, places])
        for slot_id, (_, leader) in rules.pins.items():
            if leader is not None:
                costs[(rows == self._row_of[slot_id]) & (places != rules.places[leader])] = FORBIDDEN
        led = np.flatnonzero(after.sizes > 0)
        paid = int(costs[places == after.leaders[rows]].sum())
        starts = np.searchsorted(rows, led)
        bound = int(np.minimum.reduceat(costs + prices[places], starts).sum()) if len(led) else 0
        given_up = int(changed[after.sizes == 0].sum())
        paid, bound = paid + given_up, bound + given_up
        bound -= _worth(self.certificate.leader_prices, bands)
        changes = int(changed.sum())
        certificate = self.certificate
        complaints += _compare("leaders changed", changes, certificate.leader_changes, certificate.least_leader_changes)
        if paid != bound:
            complaints.append(f"leaders changed: they cost {paid}, but the prices prove only {bound}")
        return complaints

    def _narrow(self, heirs: Matrix) -> list[str]:
        """Keep only the ready heirs of the slots for which the certificate names them."""
        complaints = []
        for each in self.certificate.ready_heirs:
            row = self._row_of.get(each.slot_id)
            names = (
                []
                if row is None
                else [self.rules.nodes[place].node_id for place in np.flatnonzero(heirs[row]).tolist()]
            )
            if row is None or not set(each.node_ids) < set(names) or not each.node_ids:
                complaints.append(f"slot {each.slot_id}: {sorted(each.node_ids)} are not some of its heirs {names}")
                continue
            heirs[row] = False
            heirs[row, [self.rules.places[name] for name in each.node_ids]] = True
        return complaints

    def lost(self) -> list[str]:
        """Problems of the list of slots that lost their last holder."""
        living = {node.node_id for node in self.rules.problem.nodes}
        before = self.before
        orphaned = np.flatnonzero((before.leaders == UNKNOWN) & (before.sizes > 0))
        deserted = orphaned[~before.holds[orphaned].any(axis=1)]
        slots = (before.slots[row] for row in deserted.tolist())
        lost = tuple(slot.slot_id for slot in slots if not living.intersection(slot.replicas))
        if lost == self.certificate.lost_slots:
            return []
        claimed = list(self.certificate.lost_slots)
        return [f"slots lost with their last holder: {list(lost)}, but the certificate says {claimed}"]


def _worth(prices: Mapping[NodeId, int], bands: Bands) -> int:
    """The greatest value of the nodes' units at these prices."""
    return sum(prices[name] * bounds[prices[name] >= 0] for name, bounds in bands.items())


def _band(share: Fraction, tolerance_percent: int, least: int, room: int) -> tuple[int, int]:
    """The bounds around a share: floor and ceiling, extended by the tolerance within pins and room."""
    low, high = floor(share), ceil(share)
    whole, part = share.numerator, share.denominator * 100
    wide_low, wide_high = whole * (100 - tolerance_percent) // part, -(-whole * (100 + tolerance_percent) // part)
    return min(low, max(wide_low, least)), max(high, min(wide_high, room))


def _compare(what: str, counted: int, claimed: int, least: int) -> list[str]:
    complaints = []
    if counted != claimed:
        complaints.append(f"{what}: {counted}, but the certificate says {claimed}")
    if least != counted:
        complaints.append(f"{what}: the certificate's least is {least}, not {counted}")
    return complaints
