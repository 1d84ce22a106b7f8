"""Hypothesis strategies for every value in the log."""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from controlplane.codec.conversion import field_types, is_enum, union_members, unwrap
from controlplane.codec.input_checks import MAX_INCARNATION
from controlplane.codec.table import ROW_TYPES
from controlplane.core.bundles.ranges import LAST_HASH
from controlplane.core.bundles.reports import (
    BundleLoad,
    BundleStatus,
    BundleStep,
    BundleStepReport,
    LoadReport,
    ResourceUsage,
)
from controlplane.core.cluster.policy import FEATURE_LEVEL, MAX_SLOT_COUNT, ClusterPolicy, HashFunction
from controlplane.core.intents.intent import Intent
from controlplane.core.log.decision import Decision
from controlplane.core.log.inputs import InputPayload
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick
from controlplane.core.membership.node import NodeRole
from controlplane.core.membership.standing_orders import MAX_WEIGHT
from controlplane.core.slots.reports import ReleasedSlots, SlotLoad, SlotSettings, SlotStatus, grouped, runs_of
from controlplane.core.values.addresses import Address
from controlplane.core.values.replica_status import ReplicaStatus

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
COUNTS = st.integers(0, (1 << 63) - 1)
RATES = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=12)
NAMES = st.text(min_size=1, max_size=12)
INCARNATIONS = st.integers(1, MAX_INCARNATION)
SLOT_IDS = st.integers(0, MAX_SLOT_COUNT - 1)


def _tuples(items: st.SearchStrategy[Any], unique_by: Callable[[Any], Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=4, unique_by=unique_by).map(tuple)


ADDRESSES = _tuples(st.builds(Address, NAMES, NAMES, st.integers(1, 65_535)), lambda each: each.name)
SLOT_GROUPS = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from(ReplicaStatus), COUNTS), max_size=12, unique_by=lambda each: each[0]
).map(lambda held: grouped(sorted(held, key=lambda each: each[0])))
SLOT_STATUSES = st.builds(SlotStatus, SLOT_IDS, COUNTS, st.booleans(), st.sampled_from(ReplicaStatus), COUNTS)
USAGES = st.just(ResourceUsage(-1.0, -1.0)) | st.builds(ResourceUsage, RATES, RATES)

BUNDLE_STEPS = _tuples(
    st.builds(
        BundleStepReport,
        NAMES,
        LONGS,
        st.sampled_from(BundleStep),
        st.sets(st.integers(1, LAST_HASH - 1), max_size=4).map(lambda bounds: tuple(sorted(bounds))),
    ),
    lambda each: each.bundle_id,
)

RELEASED_SLOTS = _tuples(
    st.builds(
        ReleasedSlots,
        COUNTS,
        st.sets(st.integers(0, 200), min_size=1, max_size=6).map(lambda ids: runs_of(sorted(ids))),
    ),
    lambda each: each.release_epoch,
)
HELD = st.one_of(
    st.tuples(_tuples(SLOT_STATUSES, lambda each: each.slot_id), st.just(())),
    st.tuples(st.just(()), SLOT_GROUPS),
)
"""What a heartbeat says of slots, in one of the two ways."""
HEARTBEATS = st.builds(
    lambda beat, held: beat._replace(slot_statuses=held[0], slot_groups=held[1]),
    st.builds(
        Heartbeat,
        NAMES,
        INCARNATIONS,
        COUNTS,
        COUNTS,
        st.sampled_from(NodeRole),
        st.none() | st.builds(SlotSettings, st.just(MAX_SLOT_COUNT), COUNTS, TEXTS),
        process_id=TEXTS,
        bundle_statuses=_tuples(
            st.builds(BundleStatus, NAMES, st.sampled_from(ReplicaStatus)), lambda each: each.bundle_id
        ),
        bundle_steps=BUNDLE_STEPS,
        released_slots=RELEASED_SLOTS,
    ),
    HELD,
)
LOAD_REPORTS = st.builds(
    LoadReport,
    node_id=NAMES,
    incarnation=INCARNATIONS,
    sent_at_ms=COUNTS,
    cpu=USAGES,
    memory=USAGES,
    direct_memory=USAGES,
    bandwidth_in=USAGES,
    bandwidth_out=USAGES,
    addresses=ADDRESSES,
    version=TEXTS,
    started_at_ms=COUNTS,
    bundles=_tuples(
        st.builds(BundleLoad, NAMES, RATES, RATES, RATES, RATES, COUNTS, COUNTS, COUNTS, COUNTS),
        lambda each: each.bundle_id,
    ),
    slots=_tuples(st.builds(SlotLoad, SLOT_IDS, RATES, RATES, COUNTS), lambda each: each.slot_id),
)
JOINS = st.builds(
    NodeJoined,
    node_id=NAMES,
    incarnation=INCARNATIONS,
    role=st.sampled_from(NodeRole),
    addresses=ADDRESSES,
    zone=TEXTS,
    weight=st.integers(1, MAX_WEIGHT),
    capacity=COUNTS,
    version=TEXTS,
    started_at_ms=COUNTS,
    process_id=TEXTS,
    hands_off=st.booleans(),
)

INPUTS: dict[type[InputPayload], st.SearchStrategy[Any]] = {
    Heartbeat: HEARTBEATS,
    Tick: st.builds(Tick, NAMES, COUNTS, COUNTS, COUNTS),
    LoadReport: LOAD_REPORTS,
    NodeJoined: JOINS,
    NodeLeaving: st.builds(NodeLeaving, NAMES, INCARNATIONS, TEXTS, TEXTS),
    NodeLeft: st.builds(NodeLeft, NAMES, INCARNATIONS, TEXTS, TEXTS),
    Intent: st.builds(Intent, NAMES, NAMES, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=3)),
}
"""Possible inputs: whatever these give, the codec has to accept."""

POLICIES = st.builds(
    ClusterPolicy,
    slot_count=st.sampled_from([1, 256, 1 << 20]),
    replica_count=st.integers(1, 5),
    hash_function=st.sampled_from(HashFunction),
    protected_ratio=st.floats(min_value=0, max_value=1, exclude_min=True),
)


def values_of(kind: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a type expression
    """Values of any type that the log holds, made from its annotations alone, not necessarily sensible ones."""
    kind = unwrap(kind)
    if kind is ClusterPolicy:
        return POLICIES
    if is_enum(kind):
        return st.sampled_from(list(kind))
    if members := union_members(kind):
        return st.one_of(*(values_of(member) for member in members))
    if (fields := field_types(kind)) is not None:
        return st.builds(kind, **{name: values_of(hint) for name, hint in fields})
    origin = typing.get_origin(kind)
    if origin is tuple:
        return st.lists(values_of(typing.get_args(kind)[0]), max_size=4).map(tuple)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(TEXTS, values_of(typing.get_args(kind)[1]), max_size=4)
    scalars: dict[Any, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: LONGS,
        float: st.floats(allow_nan=False),
        str: TEXTS,
        bytes: st.binary(max_size=16),
        type(None): st.none(),
    }
    return scalars[kind]


DECISIONS: st.SearchStrategy[Decision] = values_of(Decision).map(
    lambda decision: dataclasses.replace(decision, feature_level=FEATURE_LEVEL)
)
"""Decisions of this feature level with any events in them."""

ROWS = st.one_of(*(values_of(kind) for kind in ROW_TYPES))
"""Rows of the routing table and epoch markers."""


def records_within(kind: object) -> set[type]:
    """A record and all records that its fields can hold."""
    if isinstance(kind, typing.NewType):
        return records_within(kind.__supertype__)
    found: set[type] = set()
    fields = field_types(kind) if isinstance(kind, type) and typing.get_origin(kind) is None else None
    if fields is not None and isinstance(kind, type):
        found.add(kind)
        inner = [hint for _, hint in fields]
    else:
        inner = list(typing.get_args(kind))
    return found.union(*map(records_within, inner))
