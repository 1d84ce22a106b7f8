"""What the operator under chaos asks for: everything in turn, and never so that bundles grow without end."""

import random
from collections import Counter
from dataclasses import replace

from controlplane.core.bundles.bundle import Namespace
from controlplane.core.intents.intent import IntentKind
from controlplane.core.operations.argument_checks import check_arguments
from tests.chaos.bundle_orders import MOST_BUNDLES, Wish, next_wish
from tests.helpers.bundle_tables import owned_bundles, table_of

NODES = ("n1", "n2")


def wishes(bundles: int, namespaces: tuple[str, ...] = ("shop",), seed: int = 1) -> list[Wish | None]:
    """Many wishes for a table with that many bundles of ``shop``."""
    chance = random.Random(seed)
    table = table_of(owned_bundles("shop", bundles))
    return [next_wish(table, namespaces, NODES, chance) for _ in range(300)]


def test_moves_and_splits_of_every_sort_are_asked_for() -> None:
    """Each is an intent that some cluster could carry out, for one bundle or all."""
    kinds: Counter[IntentKind] = Counter()
    splits = set()
    for wish in wishes(4):
        assert wish is not None
        check_arguments(wish.kind, wish.arguments)
        kinds[wish.kind] += 1
        splits.add(wish.arguments.get("by"))
    assert set(kinds) == {IntentKind.TRANSFER_BUNDLES, IntentKind.UNLOAD_BUNDLES, IntentKind.SPLIT_BUNDLES}
    assert min(kinds.values()) > 30
    assert {"number", "positions"} < splits
    assert len(splits) > 5
    assert Wish(IntentKind.UNLOAD_BUNDLES, {"bundles": "shop"}) in wishes(4)


def test_a_seed_repeats_its_wishes() -> None:
    """And another seed has others."""
    assert wishes(4) == wishes(4)
    assert wishes(4) != wishes(4, seed=2)


def test_a_namespace_is_created_deleted_when_it_is_large_and_left_alone_while_it_ends() -> None:
    """So a run may last as long as it likes."""
    assert all(wish == Wish(IntentKind.DELETE_NAMESPACE, {"namespace": "shop"}) for wish in wishes(MOST_BUNDLES))
    assert Wish(IntentKind.CREATE_NAMESPACE, {"namespace": "other"}) in wishes(4, ("shop", "other"))
    ending = table_of(owned_bundles("shop", 4), namespaces=[replace(Namespace("shop", 4), is_ending=True)])
    assert next_wish(ending, ("shop",), NODES, random.Random(1)) is None
