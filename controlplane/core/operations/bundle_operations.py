"""Operations on bundles: transfer them to a node, unload them, split them.

They only give orders. The leader carries an order out step by step, as nodes report that they have followed, and ends
it with an event that says what came of it.
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.events import BundleOrdersGiven
from controlplane.core.bundles.orders import BY_NUMBER, BY_POSITIONS, BundleOrder, BundleOrderKind
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.profiles.split_rules import SPLIT_RULES
from controlplane.core.bundles.ranges import LAST_HASH, inner_bounds, range_of_name
from controlplane.core.bundles.splitting.algorithms import SpecifiedPositionsDivide
from controlplane.core.cluster.policy import HANDOFFS_FROM_LEVEL, MAX_BUNDLES_PER_NAMESPACE
from controlplane.core.intents.intent import IntentKind
from controlplane.core.log.draft import Draft
from controlplane.core.log.state import State
from controlplane.core.membership.node import NodeRole, NodeStatus
from controlplane.core.operations.answers import Answer, done, gone, refused, unknown_node
from controlplane.core.operations.arguments import NODE, Argument, check_one_of
from controlplane.core.operations.bundle_texts import (
    check_bundles,
    named_bundles,
    orderable_bundles,
    positions_text,
    split_text,
)
from controlplane.core.operations.intent_conflicts import no_goals
from controlplane.core.operations.operation import Operation, Turn
from controlplane.core.operations.operation_context import Arguments, OperationContext
from controlplane.core.values.identifiers import NodeId
from controlplane.errors import ConfigurationError

SPLIT_ALGORITHMS: Final = tuple(sorted({rule.class_name for rule in SPLIT_RULES} - {SpecifiedPositionsDivide().name}))
"""The split algorithms that an owner runs over its topics. Given positions need no algorithm: see ``BY_POSITIONS``."""
_NUMBER: Final = re.compile(r"(0x[0-9a-fA-F]{1,8})|[0-9]{1,10}")
LEAST_PARTS: Final = 2
MOST_PARTS: Final = MAX_BUNDLES_PER_NAMESPACE
"""The parts that one split may make: no more than a new namespace may have bundles."""


def check_numbers(text: str) -> None:
    """Check that the text has numbers up to 2^32 - 1 with commas between them, or is empty.

    Raises:
        ConfigurationError: it does not.
    """
    _numbers(text)


def transfer_bundles(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Order bundles to go to a node, unless that owns them already."""
    name = arguments["node"]
    refusal = _destination_refusal(draft.state, name)
    if refusal is not None:
        return refusal
    try:
        bundles = orderable_bundles(draft.state.bundles, arguments["bundles"])
    except ConfigurationError as error:
        return refused(str(error))
    there = {each.bundle_id for each in bundles if each.serving_node == name}
    to_go = [each.bundle_id for each in bundles if each.bundle_id not in there]
    _give(draft, [BundleOrder(each, BundleOrderKind.TRANSFER, name) for each in to_go])
    return done(_said(to_go, f"ordered to node {name!r}", there, f"owned by node {name!r} already"))


def unload_bundles(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Order bundles to be released by their owners, and to go to the nodes that placement chooses then."""
    try:
        bundles = orderable_bundles(draft.state.bundles, arguments["bundles"])
    except ConfigurationError as error:
        return refused(str(error))
    free = {each.bundle_id for each in bundles if each.ownership_state is OwnershipState.FREE}
    to_go = [each.bundle_id for each in bundles if each.bundle_id not in free]
    _give(draft, [BundleOrder(each, BundleOrderKind.UNLOAD) for each in to_go])
    return done(_said(to_go, "ordered to be unloaded", free, "without an owner already"))


def split_bundles(draft: Draft, arguments: Arguments, _: OperationContext) -> Answer:
    """Order owners to split bundles: into parts of equal width, at given hashes, or by an algorithm over the topics."""
    by, numbers = arguments["by"], _numbers(arguments.get("numbers", ""))
    problem = _numbers_problem(by, numbers)
    if problem is not None:
        return refused(problem)
    try:
        bundles = orderable_bundles(draft.state.bundles, arguments["bundles"])
    except ConfigurationError as error:
        return refused(str(error))
    problems = [problem for bundle in bundles if (problem := _split_problem(bundle, by, numbers)) is not None]
    if problems:
        return refused(problems[0])
    orders = [BundleOrder(each.bundle_id, BundleOrderKind.SPLIT, None, by, numbers) for each in bundles]
    _give(draft, orders)
    return done(f"{named_bundles([each.bundle_id for each in orders])} ordered to be split {split_text(orders[0])}")


def _give(draft: Draft, orders: Sequence[BundleOrder]) -> None:
    if orders:
        draft.add(BundleOrdersGiven(tuple(orders)))


def _said(ordered: Collection[str], what: str, others: Collection[str], why: str) -> str:
    """The answer: which bundles are ordered, and which need no order."""
    said = [(ordered, what), (others, why)]
    return "; ".join(f"{named_bundles(bundle_ids)} {text}" for bundle_ids, text in said if bundle_ids)


def _destination_refusal(state: State, name: NodeId) -> Answer | None:
    """Why bundles cannot be ordered to a node; None if they can."""
    node = state.membership.nodes.get(name)
    if node is None:
        return unknown_node(state, name)
    if not node.lives:
        return refused(f"node {name!r} {gone(node)}: it cannot own bundles until it joins again")
    if node.role is not NodeRole.DATA:
        return refused(f"node {name!r} is a {node.role.value} node: only data nodes own bundles")
    if node.status is NodeStatus.DRAINING:
        return refused(f"node {name!r} drains: it receives no bundles")
    if state.membership.order(name).excluded:
        return refused(f"node {name!r} is excluded: it receives no bundles until it is included again")
    return None


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a text such as ``0x40000000,0x80000000``, ascending; none of an empty text.

    Raises:
        ConfigurationError: a part of it is no number from 0 to 2^32 - 1, hexadecimal with ``0x`` or decimal.
    """
    return tuple(sorted(_number(part.strip(), text) for part in text.split(","))) if text else ()


def _number(part: str, text: str) -> int:
    found = _NUMBER.fullmatch(part)
    number = int(part, 16 if found[1] else 10) if found else LAST_HASH + 1
    if number > LAST_HASH:
        raise ConfigurationError(
            f"numbers {text!r:.160}: write numbers from 0 to {LAST_HASH} with commas, as in 2 or 0x40000000,0x80000000"
        )
    return number


def _numbers_problem(by: str, numbers: tuple[int, ...]) -> str | None:
    """Why no bundle can be split with these numbers; None if one could."""
    if by == BY_NUMBER:
        if len(numbers) == 1 and LEAST_PARTS <= numbers[0] <= MOST_PARTS:
            return None
        given = ", ".join(map(str, numbers)) or "none"
        return (
            f"a split by number needs one number from {LEAST_PARTS} to {MOST_PARTS}, the number of parts, not {given}"
        )
    if by == BY_POSITIONS:
        if 0 < len(numbers) < MOST_PARTS and all(lower < upper for lower, upper in pairwise(numbers)):
            return None
        return f"a split by positions needs 1 to {MOST_PARTS - 1} different hashes, at which the parts begin"
    return f"a split by {by} takes no numbers: the owner finds the positions" if numbers else None


def _split_problem(bundle: Bundle, by: str, numbers: tuple[int, ...]) -> str | None:
    """Why a bundle cannot be split; None if it can."""
    # An upper bound of feature level 1 is read as the last hash, as everywhere where a range is split.
    bundle_id, bounds = bundle.bundle_id, range_of_name(bundle.hash_range.name)
    if bundle.owner is None:
        return f"bundle {bundle_id!r} has no owner that could split it"
    outside = [each for each in numbers if not bounds.lower < each < bounds.upper] if by == BY_POSITIONS else []
    if outside:
        return f"bundle {bundle_id!r} cannot be split at {positions_text(outside)}: parts begin between its bounds"
    try:
        inner_bounds(bounds, numbers[0] if by == BY_NUMBER else LEAST_PARTS)
    except ConfigurationError as error:
        return f"bundle {bundle_id!r} cannot be split: {error}"
    return None


_BUNDLES: Final = Argument(
    name="bundles",
    meaning=(
        "bundles with commas between them: ids as in `kv/0x00000000_0x40000000`, and names of namespaces, each for all "
        "of its bundles"
    ),
    required=True,
    check=check_bundles,
    order=None,
)

BUNDLE_OPERATIONS: Final = (
    Operation(
        kind=IntentKind.TRANSFER_BUNDLES,
        summary=(
            "Order bundles to go to a node. A bundle without an owner is assigned to it. The leader carries the order "
            "out and says in the log what came of it."
        ),
        carry_out=transfer_bundles,
        arguments=(_BUNDLES, NODE),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=HANDOFFS_FROM_LEVEL,
        command="bundles transfer BUNDLES NODE",
        supposition="",
    ),
    Operation(
        kind=IntentKind.UNLOAD_BUNDLES,
        summary="Order bundles to be released by their owners, and to go to the nodes that placement chooses then.",
        carry_out=unload_bundles,
        arguments=(_BUNDLES,),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=HANDOFFS_FROM_LEVEL,
        command="bundles unload BUNDLES",
        supposition="",
    ),
    Operation(
        kind=IntentKind.SPLIT_BUNDLES,
        summary="Order the owners of bundles to split them. The parts stay with the owner.",
        carry_out=split_bundles,
        arguments=(
            _BUNDLES,
            Argument(
                name="by",
                meaning=(
                    "how: `number` for parts of equal width, `positions` for parts that begin at given hashes, or the "
                    "algorithm that the owner runs over its topics: "
                    + ", ".join(f"`{name}`" for name in SPLIT_ALGORITHMS)
                ),
                required=True,
                check=check_one_of("by", BY_NUMBER, BY_POSITIONS, *SPLIT_ALGORITHMS),
                order=None,
            ),
            Argument(
                name="numbers",
                meaning=(
                    f"for `number` the number of parts, {LEAST_PARTS} to {MOST_PARTS}; for `positions` the first hash "
                    "of each part but the first, as in `0x40000000,0x80000000`; nothing for an algorithm"
                ),
                required=False,
                check=check_numbers,
                order=None,
            ),
        ),
        check_settings=None,
        goals=no_goals,
        turn=Turn.IN_ORDER,
        feature_level=HANDOFFS_FROM_LEVEL,
        command="bundles split BUNDLES [--into NUMBERS | --at NUMBERS | --by BY]",
        supposition="",
    ),
)
