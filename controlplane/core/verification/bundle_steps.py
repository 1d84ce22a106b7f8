"""What has to hold of the rows of a bundle that is handed off, and of each step from one row to the next."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.bundles.ownership_channel.live_rows import judge_rows
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.values.identifiers import Epoch, NamespaceName

_HAS_OWNER = frozenset({OwnershipState.OWNED, OwnershipState.RELEASING, OwnershipState.SPLITTING})


class RowsSoFar:
    """The bundles of a state, with the rows of a decision's events so far over them."""

    def __init__(self, bundles: Mapping[str, Bundle]) -> None:
        """Begin with the state before the decision, which is not copied."""
        self._bundles = bundles
        self._changed: dict[str, Bundle] = {}

    def get(self, bundle_id: str) -> Bundle | None:
        """The latest row of a bundle; None without one."""
        return self._changed.get(bundle_id) or self._bundles.get(bundle_id)

    def put(self, rows: Iterable[Bundle]) -> None:
        """Lay the rows of an event over those before."""
        self._changed.update((row.bundle_id, row) for row in rows)


def shape_problems(bundle: Bundle) -> Iterator[str]:
    """The fields of a row that do not fit its state, as sentences."""
    state = bundle.ownership_state
    has_next = bundle.next_owner is not None
    for holds, problem in (
        (state not in (OwnershipState.INIT, OwnershipState.DELETED), "no row is in this state"),
        ((bundle.owner is not None) == (state in _HAS_OWNER), f"its owner is {bundle.owner!r}"),
        (not has_next or state in (OwnershipState.RELEASING, OwnershipState.ASSIGNING), "it has a next owner"),
        (state is not OwnershipState.ASSIGNING or has_next, "it has no next owner"),
        (not has_next or bundle.next_owner != bundle.owner, "its next owner is its owner"),
        ((state is OwnershipState.SPLITTING) == bool(bundle.children or bundle.split_algorithm), "children"),
    ):
        if not holds:
            yield f"bundle {bundle.bundle_id} is {state.value}: {problem}"


def step_problems(rows: RowsSoFar, changed: Iterable[Bundle], epoch: Epoch) -> Iterator[str]:
    """The rows of an event that may not follow those before them, as sentences.

    Args:
        rows: the rows before the event.
        changed: the rows of the event.
        epoch: of the table with them.
    """
    for row in changed:
        before = rows.get(row.bundle_id)
        if before is None:
            yield f"bundle {row.bundle_id} changes, and there is no such bundle"
        elif row.state is not None:
            verdict = judge_rows(before, row)
            if verdict.keeps:
                yield (
                    f"bundle {row.bundle_id} goes from {before.ownership_state.value} to {row.state.value}: "
                    f"{verdict.value}"
                )
            if row.state_epoch != epoch:
                yield f"bundle {row.bundle_id} is written in epoch {epoch} as of epoch {row.state_epoch}"
            gains = row.owner is not None and row.owner != before.owner
            if gains and row.owner_epoch != epoch:
                yield f"bundle {row.bundle_id} changes its owner and keeps the owner epoch {row.owner_epoch}"


def deletion_problems(rows: RowsSoFar, namespace: NamespaceName, bundle_ids: Iterable[str]) -> Iterator[str]:
    """The bundles that end with their namespace although a node serves them or is to open them, as sentences."""
    for bundle_id in bundle_ids:
        row = rows.get(bundle_id)
        if row is not None and row.ownership_state is not OwnershipState.FREE:
            has = f"by {row.owner!r}" if row.owner is not None else f"to {row.next_owner!r}"
            yield f"namespace {namespace!r} ends with bundle {bundle_id}, which is {row.ownership_state.value} {has}"


def split_problems(parent: Bundle | None, children: Iterable[Bundle]) -> Iterator[str]:
    """What is wrong with a split, as sentences."""
    if parent is None or parent.ownership_state is not OwnershipState.SPLITTING:
        yield f"a bundle is split that is {parent.ownership_state.value if parent else 'unknown'}, and not Splitting"
        return
    parts = tuple(children)
    bounds = [(part.lower, part.upper) for part in parts]
    tiles = bool(parts) and bounds[0][0] == parent.lower and bounds[-1][1] == parent.upper
    if not tiles or any(left[1] != right[0] for left, right in pairwise(bounds)):
        yield f"the parts of bundle {parent.bundle_id} do not cover its range exactly once"
    for part in parts:
        if (part.owner, part.owner_epoch) != (parent.owner, parent.owner_epoch):
            yield f"part {part.bundle_id} has another owner or token than bundle {parent.bundle_id}"
