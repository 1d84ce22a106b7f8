"""What the digest of a state is made of."""

import json
from dataclasses import fields, is_dataclass, replace

from controlplane.config import ClusterConfig
from controlplane.core.bundles.events import BundleOrdersGiven, BundlesAssigned
from controlplane.core.bundles.orders import BundleOrder, BundleOrderKind
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.log.apply import apply
from controlplane.core.log.state import State, all_entries
from controlplane.core.slots.events import SlotHandoffsChanged
from controlplane.core.slots.handoffs import SlotHandoff
from controlplane.core.values.canonical import CanonicalValue, canonical_bytes, to_canonical
from controlplane.core.values.digests import format_digest
from controlplane.core.values.entries import Entries
from controlplane.core.values.identifiers import Epoch, SlotId
from controlplane.core.values.image import Image
from tests.helpers.published_world import PublishedWorld


def test_every_part_of_the_state_is_an_image() -> None:
    """A part that is no ``Image`` would be digested as a whole, and its entries would never be checked."""
    parts = {each.name for each in fields(State) if is_dataclass(getattr(State(), each.name))}
    assert parts == {each.name for each in fields(State) if isinstance(getattr(State(), each.name), Image)}


def test_all_entries_of_every_image_are_found() -> None:
    """``wrong_digests`` checks what :func:`all_entries` names."""
    images = [(each.name, getattr(State(), each.name)) for each in fields(State)]
    expected = {
        f"{name}.{each.name}"
        for name, image in images
        if is_dataclass(image)
        for each in fields(image)
        if isinstance(getattr(image, each.name), Entries)
    }
    assert {path for path, _ in all_entries(State())} == expected
    assert len(expected) > 5


def _world_state() -> State:
    """A state that uses every later field of an image: the summary leaves out those that have their defaults."""
    world = PublishedWorld(ClusterConfig("digests"), ClusterPolicy(slot_count=8))
    world.admit("n1", "n2")
    world.intent("i1", "create_namespace", namespace="kv")
    world.intent("i2", "set_tenant", tenant="acme", clusters="eu")
    world.ask("change_policy", forget_nodes_after_ms="30000")
    world.run(35_000, ("n1",))
    world.run(4_000)
    world.ask("change_policy", silence_limit_ms="2000")
    bundle = world.state.bundles.by_id["kv/0x00000000_0x40000000"]
    releasing = replace(bundle, owner="n1", state=OwnershipState.RELEASING, next_owner="n2")
    ordered = apply(world.state, BundleOrdersGiven((BundleOrder(bundle.bundle_id, BundleOrderKind.UNLOAD),)))
    handed_off = SlotHandoffsChanged((SlotHandoff(SlotId(0), "n2", Epoch(1), 0),))
    return apply(apply(ordered, BundlesAssigned((releasing,))), handed_off)


def test_the_summary_is_the_canonical_form_with_digests_in_place_of_entries() -> None:
    """Its parts are joined as text, which has to be the text of the whole."""
    state = _world_state()
    expected: dict[str, CanonicalValue] = {}
    for each in fields(State):
        value = getattr(state, each.name)
        if isinstance(value, Image):
            parts = {part.name: getattr(value, part.name) for part in fields(value)}
            expected[each.name] = {name: _short(part) for name, part in parts.items()}
        elif each.name != "last_digest":
            expected[each.name] = to_canonical(value)
    assert state.summary() == canonical_bytes(json.loads(canonical_bytes(expected)))


def _short(part: object) -> CanonicalValue:
    return [len(part), format_digest(part.digest)] if isinstance(part, Entries) else json.loads(canonical_bytes(part))


def test_every_field_counts_in_the_digest_but_the_digest_of_the_last_decision() -> None:
    """Also that of an image whose summary was computed before another one took its place."""
    state = _world_state()
    digest = state.digest()
    for each in fields(State):
        initial = getattr(State(), each.name)
        differs = initial != getattr(state, each.name)
        changed = replace(state, **{each.name: initial}).digest() != digest
        assert changed == (differs and each.name != "last_digest"), each.name
    assert digest == state.digest()


def test_tenants_and_the_clusters_name_do_not_change_digests_of_older_logs() -> None:
    """A log of the first level has neither, and its digests were computed before there were any."""
    state = State()
    assert b"tenants" not in state.summary()
    assert b'"name"' not in state.summary()
    assert b'"tenants":[1,' in _world_state().summary()
    assert b'"name":"digests"' in _world_state().summary()
