"""SOFARegistry's decisions as a slot policy: a decision contains at most one tick of its arranger.

:mod:`controlplane.core.slots.policies.sofa_memory` keeps the arranger's data between ticks.
:mod:`controlplane.core.slots.sync` decides whether balancing has to wait. The policy ignores weights, capacities,
zones, pins and exclusions.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.policies import sofa_memory
from controlplane.core.slots.policy_contract import SlotAnswer, SlotBalance, SlotPolicy, SlotRequest
from controlplane.core.slots.sofa.arranger import ArrangeSettings, Tick, TickAction, arrange
from controlplane.core.slots.sofa.balance_numbers import BalanceNumbers, ceiling_mean
from controlplane.core.slots.sofa.force_refresh import round_robin
from controlplane.core.slots.sofa.table import SofaTable
from controlplane.core.slots.sync import MAX_SYNC_GAP_MS, is_stable
from controlplane.core.slots.table import NodeSlots, Slot, by_node
from controlplane.core.values.identifiers import Epoch, NodeId
from controlplane.errors import ConfigurationError

POLICY_NAME: Final = "sofa"
REFRESH: Final = "refresh"
"""The prefix of the evidence of what an operator asked for. Every other evidence begins with the tick's action."""
_LEAST: Final = {"max_leader_moves": 1, "max_follower_moves": 1, "max_sync_gap_ms": 1}
_MOST: Final = {"threshold_percent": 100}


@dataclass(frozen=True, slots=True)
class SofaOptions:
    """The options of the policy; the defaults are SOFARegistry's.

    Attributes:
        threshold_percent: ``registry.slot.balance.threshold``.
        max_leader_moves: ``registry.slot.leader.max.move``.
        max_follower_moves: ``registry.slot.follower.max.move``.
        protected_nodes: ``registry.data.protection.num``.
        max_sync_gap_ms: ``registry.data.replicate.max.gap.millis``.
    """

    threshold_percent: int = 10
    max_leader_moves: int = 6
    max_follower_moves: int = 10
    protected_nodes: int = 0
    max_sync_gap_ms: int = MAX_SYNC_GAP_MS

    def settings(self, slot_count: int, replicas: int) -> ArrangeSettings:
        """The settings of the arranger."""
        numbers = BalanceNumbers(self.threshold_percent, self.max_leader_moves, self.max_follower_moves)
        return ArrangeSettings(slot_count, replicas, self.protected_nodes, numbers)


_DIGITS: Final = 18
"""Greatest number of digits of an option. Python refuses to parse thousands of digits, which would end the leader."""


def sofa_options(texts: Mapping[str, str]) -> SofaOptions:
    """The options from a cluster's policy.

    Raises:
        ConfigurationError: an option is unknown or out of range; the message says what it may be.
    """
    known = [field.name for field in fields(SofaOptions)]
    for name, text in texts.items():
        if name not in known:
            raise ConfigurationError(f"slot_policy_options.{name}: sofa knows {', '.join(known)}")
        least, most = _LEAST.get(name, 0), _MOST.get(name)
        written = text.isascii() and text.isdigit() and len(text) <= _DIGITS
        if not written or int(text) < least or (most is not None and int(text) > most):
            bounds = (
                f"from {least} on, with at most {_DIGITS} digits" if most is None else f"between {least} and {most}"
            )
            raise ConfigurationError(f"slot_policy_options.{name} is {text!r:.80}: take a whole number {bounds}")
    return SofaOptions(**{name: int(text) for name, text in texts.items()})


def known_nodes(nodes: Sequence[NodeId], renewed: Collection[NodeId], slots: Sequence[Slot]) -> list[NodeId]:
    """The nodes that a tick is given.

    A new process whose name is still in the table is left out, because SOFARegistry would first lose the old process
    and know the new one from the next tick on.
    """
    named = {node_id for slot in slots for node_id in slot.replicas} if renewed else set()
    return [node_id for node_id in nodes if node_id not in renewed or node_id not in named]


class SofaPolicy(SlotPolicy):
    """See :mod:`controlplane.core.slots.sofa`."""

    name = POLICY_NAME
    interval_ms = 1_000
    """``registry.slot.arrange.interval.millis``."""
    dead_may_hold = True
    paces_itself = True

    def check_options(self, options: Mapping[str, str]) -> None:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`."""
        sofa_options(options)

    def plan(self, request: SlotRequest) -> SlotAnswer:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`; an exception leaves the table as it is."""
        options = sofa_options(request.policy.slot_policy_options)
        nodes = known_nodes(request.owner_ids, request.renewed, request.slots)
        now = Epoch(request.epoch - 1)
        asks_for_balance = not request.refresh and len(nodes) > options.protected_nodes and _is_complete(request, nodes)
        stable = asks_for_balance and self.is_in_sync(request)
        if asks_for_balance and not stable:
            return _left_alone(request, f"{TickAction.NONE.value}: not every slot is in sync", waits=True)
        before = sofa_memory.sofa_table(request.slots, request.memory, now)
        settings = options.settings(len(request.slots), request.policy.replica_count)
        mint = itertools.count(sofa_memory.greatest_epoch(before) + 1).__next__
        if request.refresh:
            made = round_robin(nodes, settings.slot_count, settings.replicas, mint)
            made.check()
            return _published(request, before, made, REFRESH)
        tick = arrange(before, nodes, settings, mint, stable=stable)
        if tick.published:
            return _published(request, before, tick.table, tick.action.value)
        protects = tick.action is TickAction.PROTECT
        return _left_alone(request, _idle_evidence(tick, len(nodes), options.protected_nodes), protects=protects)

    def check_table(self, slots: tuple[Slot, ...], policy: ClusterPolicy) -> None:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`; it never takes surplus replicas away."""
        most_holders = max((len(slot.replicas) for slot in slots), default=0)
        if most_holders > policy.replica_count:
            raise ConfigurationError(
                f"slots have up to {most_holders} replicas, and sofa cannot lower that to {policy.replica_count}: "
                "lower replica_count under minimal first, and change slot_policy then"
            )

    def remember_leader_epochs(self, slots: Sequence[Slot], memory: Mapping[str, str]) -> Mapping[str, str | None]:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`; SOFARegistry knows no processes."""
        return sofa_memory.kept_leader_epochs(slots, memory)

    def is_in_sync(self, request: SlotRequest) -> bool:
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`; earlier reports do not count."""
        options = sofa_options(request.policy.slot_policy_options)
        arranged_at = sofa_memory.arranged_at(request.memory, Epoch(request.epoch - 1))
        return is_stable(request.slots, request.reports, arranged_at, options.max_sync_gap_ms)

    def balance(self, request: SlotRequest, answer: SlotAnswer) -> SlotBalance:  # noqa: ARG002 - by bounds of its own
        """See :class:`controlplane.core.slots.policy_contract.SlotPolicy`; with one replica there is no lower bound."""
        nodes = request.owner_ids
        options = sofa_options(request.policy.slot_policy_options)
        settings = options.settings(len(request.slots), request.policy.replica_count)
        held = by_node(request.slots)
        slots = [held.get(node_id, NodeSlots(node_id, (), ())) for node_id in nodes]
        leads, follows = [len(each.leads) for each in slots], [len(each.follows) for each in slots]
        if not nodes or settings.replicas == 1:
            return SlotBalance(_none_above(leads, settings.slot_count, settings.numbers), followers=True)
        followers = settings.slot_count * (settings.replicas - 1)
        return SlotBalance(
            _none_above(leads, settings.slot_count, settings.numbers)
            and min(leads) >= settings.numbers.low(settings.slot_count // len(nodes)),
            _none_above(follows, followers, settings.numbers)
            and min(follows) >= settings.numbers.low(followers // len(nodes)),
        )


def _none_above(counts: Sequence[int], total: int, numbers: BalanceNumbers) -> bool:
    """Whether no node is above the threshold for this total."""
    return not counts or max(counts) <= numbers.high(ceiling_mean(total, len(counts)))


def _is_complete(request: SlotRequest, nodes: Sequence[NodeId]) -> bool:
    """Whether every slot has exactly its number of living replicas: the arranger's result at a lower cost."""
    living = set(nodes)
    wanted = request.policy.replica_count - 1
    return all(
        slot.leader in living and len(slot.followers) == wanted and living.issuperset(slot.followers)
        for slot in request.slots
    )


def _published(request: SlotRequest, before: SofaTable, made: SofaTable, action: str) -> SlotAnswer:
    table = sofa_memory.with_ranks(made, before)
    new_rows = sofa_memory.rows(table, request.slots, request.epoch)
    now = Epoch(request.epoch - 1)
    changes = new_rows != request.slots
    published_at = request.epoch if changes else sofa_memory.arranged_at(request.memory, now)
    remembered = sofa_memory.remembered(table, new_rows, request.memory, published_at)
    pairs = list(zip(request.slots, new_rows, strict=True))
    leaders = sum(1 for old, new in pairs if old.leader != new.leader)
    copies = sum(len({*new.replicas}.difference(old.replicas)) for old, new in pairs)
    base = sofa_memory.greatest_epoch(before)
    evidence = (
        f"{action}: {leaders} slots get another leader, {copies} replicas are new, "
        f"epochs {base + 1} to {sofa_memory.greatest_epoch(table)}"
    )
    rows = tuple(new for held, new in zip(request.held, new_rows, strict=True) if new != held)
    return SlotAnswer(rows, None, remembered, evidence)


def _left_alone(request: SlotRequest, evidence: str, *, waits: bool = False, protects: bool = False) -> SlotAnswer:
    """The answer that leaves the table as it was, including dead and renewed nodes."""
    return SlotAnswer(request.as_published(), evidence=evidence, waits=waits, protects=protects)


def _idle_evidence(tick: Tick, node_count: int, protected_nodes: int) -> str:
    match tick.action:
        case TickAction.EMPTY:
            why = "no node lives that may hold slots"
        case TickAction.PROTECT:
            why = f"nothing changes with {node_count} nodes, protected are {protected_nodes}"
        case TickAction.ASSIGN:
            why = "nobody is left who could hold what is missing"
        case _:
            why = "nothing has to move"
    return f"{tick.action.value}: {why}"
