"""What every rule for bundles promises to those who call it, as checks for tests of rules.

The built-in rules are held against the same checks. They ask a rule for views of working clusters and of broken ones:
loads that are missing, negative, infinite or not a number, nodes without bundles, bundles without averages, ties.
"""

import math
import random
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any, Final

from controlplane.core.bundles.load.averages import BundleAverages, MessageLoad, NodeAverages, TimeAverage
from controlplane.core.bundles.load.view import BundleHistory, LoadView, NodeLoad, NodeView
from controlplane.core.bundles.placement.contract import BundleToPlace, MissingLoadError, PlacementStrategy, Selection
from controlplane.core.bundles.reports import ResourceUsage
from controlplane.core.bundles.shedding.contract import ShedChoice, Shedder, Shedding, UnloadOutcome
from controlplane.core.values.encodable import unencodable

_BAD: Final = (math.nan, math.inf, -math.inf, -1.0, 1e308, 0.0)
_CYCLES: Final = 4
_NOW_MS: Final = 1_700_000_000_000
_STRANGER: Final = "a node without a report"


def sample_views(seed: int = 0, count: int = 60) -> tuple[LoadView, ...]:
    """Views of a modular load manager: an empty one, one of a single node, and random ones; a third has bad loads.

    Args:
        seed: equal seeds give equal views.
        count: the number of random views.
    """
    drawn = random.Random(seed)  # noqa: S311 - samples, nothing secret
    alone = NodeView(NodeLoad("n0", cpu=ResourceUsage(99.0, 100.0), bundles=("t/n/0x00000000_0xffffffff",)))
    return (LoadView({}), LoadView({"n0": alone}), *(_view(drawn, is_bad=index % 3 == 0) for index in range(count)))


def check_shedder(shedder: Shedder[LoadView, Any], views: Iterable[LoadView] | None = None) -> None:
    """Check the promises of a shedder of the modular load manager.

    It answers for every view. Equal views and memories get equal answers, and stay as they were. A choice names a node
    of the view, a bundle that the view knows, and evidence; its destination, if it has one, is another node of the
    view. No bundle is chosen twice. It takes every outcome of each choice, in any order. Its memories can be stored
    (:mod:`controlplane.core.values.encodable`).

    Args:
        shedder: the rule.
        views: the views that it is asked for; the default is :func:`sample_views`.

    Raises:
        AssertionError: a promise does not hold. The message says which one.
    """
    for view in sample_views() if views is None else views:
        memory = shedder.first_memory
        for _ in range(_CYCLES):
            _check_memory(shedder.name, memory)
            before = repr((view, memory))
            answer = shedder.shed(view, memory)
            _hold_type(answer, Shedding, f"{shedder.name}.shed")
            for choice in answer.choices:
                _hold_type(choice, ShedChoice, f"{shedder.name}: a choice")
            _hold(repr(answer) == repr(shedder.shed(view, memory)), f"{shedder.name}: equal inputs, different answers")
            _hold(repr((view, memory)) == before, f"{shedder.name}: it changed its view or its memory")
            _check_choices(shedder.name, view, answer.choices)
            memory = _told(shedder, answer.memory, answer.choices)
        _check_memory(shedder.name, memory)
        kept = repr(memory)
        shedder.retain(memory, frozenset({_STRANGER}))
        _hold(repr(memory) == kept, f"{shedder.name}: retain changed the memory")


def check_placement(strategy: PlacementStrategy[LoadView, Any], views: Iterable[LoadView] | None = None) -> None:
    """Check the promises of a placement strategy of the modular load manager.

    It answers for every view whose candidates have all reported; for another candidate it may raise
    :class:`MissingLoadError` instead. Equal inputs get equal answers, and stay as they were. The best nodes are
    different candidates; without a candidate there are none, with candidates at least one. Its memories can be stored,
    as those of a shedder.

    Args:
        strategy: the rule.
        views: the views that it is asked for; the default is :func:`sample_views`.

    Raises:
        AssertionError: a promise does not hold. The message says which one.
    """
    for view in sample_views() if views is None else views:
        memory = strategy.first_memory
        for bundle in _bundles(view):
            for candidates in (tuple(view.nodes), tuple(view.nodes)[::-1], ()):
                memory = _check_selection(strategy, bundle, candidates, view, memory)
            try:
                memory = _check_selection(strategy, bundle, (*view.nodes, _STRANGER), view, memory)
            except MissingLoadError as error:
                _hold(error.node_id == _STRANGER, f"{strategy.name}: it misses the load of {error.node_id}")
        _check_memory(strategy.name, memory)
        kept = repr(memory)
        strategy.retain(memory, frozenset({_STRANGER}))
        _hold(repr(memory) == kept, f"{strategy.name}: retain changed the memory")


def _check_memory(name: str, memory: object) -> None:
    found = unencodable(memory, "memory")
    _hold(found is None, f"{name}: {found}")


def _check_choices(name: str, view: LoadView, choices: Sequence[Any]) -> None:
    known = {*view.bundles, *(each for node in view.nodes.values() for each in node.load.bundles)}
    for choice in choices:
        _hold(choice.node_id in view.nodes, f"{name}: node {choice.node_id!r} is not in the view")
        _hold(choice.bundle_id in known, f"{name}: bundle {choice.bundle_id!r} is not in the view")
        _hold(choice.destination in (None, *view.nodes), f"{name}: no node {choice.destination!r} is in the view")
        _hold(choice.destination != choice.node_id, f"{name}: bundle {choice.bundle_id!r} is to move to its own node")
        _hold(bool(choice.evidence), f"{name}: the choice of {choice.bundle_id!r} has no evidence")
    chosen = [(choice.node_id, choice.bundle_id) for choice in choices]
    _hold(len({*chosen}) == len(chosen), f"{name}: a bundle is chosen twice")


def _told(shedder: Shedder[LoadView, Any], memory: Any, choices: Sequence[ShedChoice]) -> Any:  # noqa: ANN401 - as below
    """The memory after the choices have ended, each in another way."""
    for choice, outcome in zip(choices, cycle(UnloadOutcome), strict=False):
        kept = repr(memory)
        after = shedder.after_unload(memory, choice, outcome, _NOW_MS)
        again = shedder.after_unload(memory, choice, outcome, _NOW_MS)
        _hold(repr(after) == repr(again), f"{shedder.name}: equal ends of a choice, different memories")
        _hold(repr(memory) == kept, f"{shedder.name}: after_unload changed the memory")
        memory = after
    return memory


def _check_selection(
    strategy: PlacementStrategy[LoadView, Any],
    bundle: BundleToPlace,
    candidates: tuple[str, ...],
    view: LoadView,
    memory: Any,  # noqa: ANN401 - each rule has a memory of its own
) -> Any:  # noqa: ANN401 - as above
    """The memory after the selection and the pick of the first of the best nodes."""
    name, before = strategy.name, repr((view, memory))
    found = strategy.select(bundle, candidates, view, memory)
    _hold_type(found, Selection, f"{name}.select")
    again = strategy.select(bundle, candidates, view, memory)
    _hold(repr(found) == repr(again), f"{name}: equal inputs, different answers")
    _hold({*found.best} <= {*candidates}, f"{name}: {found.best} are not all candidates")
    _hold(len({*found.best}) == len(found.best), f"{name}: a node is twice among the best")
    _hold(bool(found.best) == bool(candidates), f"{name}: {len(found.best)} best of {len(candidates)} candidates")
    after = strategy.after_pick(bundle, found.best[0], view, found.memory) if found.best else found.memory
    _hold(repr((view, memory)) == before, f"{name}: it changed its view or its memory")
    return after


def _bundles(view: LoadView) -> tuple[BundleToPlace, ...]:
    known = (BundleToPlace(name, history) for name, history in [*view.bundles.items()][:2])
    return (BundleToPlace("t/n/0x00000000_0xffffffff", _history(MessageLoad(0.0, 0.0, 0.0, 0.0))), *known)


def _view(drawn: random.Random, *, is_bad: bool) -> LoadView:
    def amount(greatest: int) -> float:
        """A whole number, so that ties occur; sometimes a bad one."""
        return drawn.choice(_BAD) if is_bad and drawn.random() < 1 / 4 else float(drawn.randint(0, greatest))

    def load() -> MessageLoad:
        return MessageLoad(amount(60) * 2**20, amount(60) * 2**20, amount(3_000), amount(3_000))

    nodes: dict[str, NodeView] = {}
    bundles: dict[str, BundleHistory] = {}
    for node in range(drawn.randint(1, 6)):
        mine = {f"t/n{drawn.randint(0, 1)}/{node}-{each}": _history(load()) for each in range(drawn.randint(0, 5))}
        bundles |= mine
        unknown = (f"t/n0/{node}-unknown",) * drawn.randint(0, 1)
        total = load()
        nodes[f"n{node}"] = NodeView(
            NodeLoad(
                f"n{node}",
                cpu=ResourceUsage(amount(100), 100.0),
                memory=ResourceUsage(amount(100), 100.0),
                bandwidth_in=ResourceUsage(amount(100), amount(100)),
                traffic=total,
                bundles=(*mine, *unknown),
                bundle_count=len(mine),
            ),
            NodeAverages(total, total),
            {"t/n0/coming": _history(load())} if drawn.random() < 1 / 4 else {},
        )
    resting = frozenset(name for name in bundles if drawn.random() < 1 / 8)
    return LoadView(nodes, bundles, resting)


def _history(load: MessageLoad) -> BundleHistory:
    return BundleHistory(BundleAverages(TimeAverage(10, 1, load), TimeAverage(1_000, 1, load)))


def _hold_type(value: object, kind: type, what: str) -> None:
    _hold(isinstance(value, kind), f"{what} is {value!r:.80}, expected a {kind.__name__}")


def _hold(holds: bool, promise: str) -> None:  # noqa: FBT001 - a condition, as in an assertion
    if not holds:
        raise AssertionError(promise)
