"""What nodes do when they read records: assignment, unload, transfer, split, and a node that shuts down."""

from dataclasses import replace

import pytest

from controlplane.core.bundles.ownership_channel import requests
from controlplane.core.bundles.ownership_channel.flows import (
    Action,
    CloseTopics,
    Divide,
    Participant,
    Serve,
    WithdrawLoad,
)
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.ownership_channel.shutdown import ShutdownStep
from controlplane.core.bundles.ownership_channel.split_steps import retry_delay_ms, split_steps
from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.ownership_channel.table import OwnershipTable, Written
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.bundles.ranges import LAST_HASH, Boundaries, HashRange

BUNDLE = "t/n/0x00000000_0xffffffff"
LEFT, RIGHT = HashRange(0, 0x80000000), HashRange(0x80000000, LAST_HASH)
WHOLE, HALVES = Boundaries((0, LAST_HASH)), Boundaries((0, 0x80000000, LAST_HASH))
SETTINGS = OwnershipSettings()
IN_ONE_PHASE = OwnershipSettings(unloads_in_phases=False)
NOW = 1_000
OWNED_BY_A = OwnershipRecord(OwnershipState.OWNED, "a", None, 2)
SPLIT = requests.split(OWNED_BY_A, "a", {LEFT.name: None, RIGHT.name: None}, NOW)


def run(
    first: OwnershipRecord, present: OwnershipRecord | None = OWNED_BY_A, settings: OwnershipSettings = SETTINGS
) -> tuple[OwnershipRecord | None, list[tuple[str, Action]]]:
    """Publish a record and let all nodes read until nobody publishes: the bundle's record, and who did what."""
    nodes = [Participant(name, settings) for name in "abc"]
    table = OwnershipTable(Storage.METADATA_STORE, {} if present is None else {BUNDLE: present})
    log, done = [Written(BUNDLE, first)], list[tuple[str, Action]]()
    while log:
        table, (judged,) = table.read([log.pop(0)])
        assert not judged.verdict.keeps, judged
        for node in nodes:
            for action in node.on_record(judged.written, NOW):
                done.append((node.node_id, action))
                if isinstance(action, Written):
                    log.append(action)
    return table.records.get(BUNDLE), done


def test_an_assignment_is_confirmed_by_its_destination() -> None:
    """Nobody serves a bundle before every reader can know it."""
    record, done = run(requests.assign(None, "b", NOW), None)
    owned = OwnershipRecord(OwnershipState.OWNED, "b", None, 2, NOW)
    assert record == owned
    assert done == [("b", Written(BUNDLE, owned)), ("b", Serve(BUNDLE)), ("b", WithdrawLoad(BUNDLE))]


def test_an_unload_frees_the_bundle_when_its_topics_are_closed() -> None:
    """The clients are disconnected without a hint: nobody owns the bundle yet."""
    record, done = run(requests.unload(OWNED_BY_A, "a", NOW))
    freed = OwnershipRecord(OwnershipState.FREE, None, "a", 4, NOW)
    assert record == freed
    closed = CloseTopics(BUNDLE, disconnects_clients=True)
    assert done == [("a", closed), ("a", Written(BUNDLE, freed)), ("a", WithdrawLoad(BUNDLE))]


def test_a_transfer_keeps_the_clients_until_the_new_owner_serves() -> None:
    """Clients are told the new owner, so that they need no look-up."""
    record, done = run(requests.unload(OWNED_BY_A, "a", NOW, "b"))
    assigned = OwnershipRecord(OwnershipState.ASSIGNING, "b", "a", 4, NOW)
    owned = OwnershipRecord(OwnershipState.OWNED, "b", "a", 5, NOW)
    assert record == owned
    assert done == [
        ("a", CloseTopics(BUNDLE, disconnects_clients=False)),
        ("a", Written(BUNDLE, assigned)),
        ("a", WithdrawLoad(BUNDLE)),
        ("b", Written(BUNDLE, owned)),
        ("a", CloseTopics(BUNDLE, disconnects_clients=True, new_owner="b")),
        ("b", Serve(BUNDLE)),
        ("b", WithdrawLoad(BUNDLE)),
    ]


def test_a_transfer_in_one_phase_disconnects_at_once() -> None:
    """Without phases (PIP-307 off) the former owner has nothing left to close in the end."""
    _, done = run(requests.unload(OWNED_BY_A, "a", NOW, "b"), settings=IN_ONE_PHASE)
    closed = [action for _, action in done if isinstance(action, CloseTopics)]
    assert closed == [CloseTopics(BUNDLE, disconnects_clients=True)]


@pytest.mark.parametrize("settings", [SETTINGS, IN_ONE_PHASE])
def test_a_former_owner_that_was_taken_for_dead_closes_its_topics(settings: OwnershipSettings) -> None:
    """A forced record says that nobody has closed them before."""
    forced = OwnershipRecord(OwnershipState.OWNED, "b", "a", 3, NOW, is_forced=True)
    expected = (CloseTopics(BUNDLE, disconnects_clients=True, new_owner="b"),)
    assert Participant("a", settings).on_record(Written(BUNDLE, forced), NOW) == expected
    assert Participant("c", settings).on_record(Written(BUNDLE, forced), NOW) == ()


def test_a_former_owner_closes_and_forgets_a_bundle_that_was_freed_by_force() -> None:
    """No node could take it, and whoever held it has to let it go."""
    forced = OwnershipRecord(OwnershipState.FREE, None, "a", 3, NOW, is_forced=True)
    expected = (CloseTopics(BUNDLE, disconnects_clients=True), Written(BUNDLE, None))
    assert Participant("a", SETTINGS).on_record(Written(BUNDLE, forced), NOW) == expected
    assert Participant("a", SETTINGS).on_record(Written(BUNDLE, replace(forced, is_forced=False)), NOW) == ()


def test_a_split_is_carried_out_by_its_source_and_forgotten_by_it() -> None:
    """The parent's last record is deleted by the node that wrote it."""
    node = Participant("a", SETTINGS)
    assert node.on_record(Written(BUNDLE, SPLIT), NOW) == (Divide(BUNDLE, SPLIT), WithdrawLoad(BUNDLE))
    last = OwnershipRecord(OwnershipState.DELETED, None, "a", 4)
    assert node.on_record(Written(BUNDLE, last), NOW) == (Written(BUNDLE, None),)
    assert Participant("b", SETTINGS).on_record(Written(BUNDLE, last), NOW) == ()


def test_a_node_that_shuts_down_obeys_forced_records_alone() -> None:
    """It must not take a bundle any more, but has to give its own away."""
    node = Participant("a", SETTINGS, is_disabled=True)
    assigned = OwnershipRecord(OwnershipState.ASSIGNING, "a")
    assert node.on_record(Written(BUNDLE, assigned), NOW) == ()
    forced = OwnershipRecord(OwnershipState.RELEASING, "b", "a", 3, NOW, is_forced=True)
    assert CloseTopics(BUNDLE, disconnects_clients=False) in node.on_record(Written(BUNDLE, forced), NOW)
    assert node.on_record(Written(BUNDLE, None), NOW) == ()
    assert [step.value for step in ShutdownStep] == [
        "stop-reports",
        "disable-table",
        "give-bundles-away",
        "unregister",
        "resign",
        "close-topics",
    ]


def test_a_node_that_starts_serves_what_it_owns_and_takes_what_it_was_given() -> None:
    """Before #25379 an assignment that came while the node was away waited for the leader's search."""
    node = Participant("a", SETTINGS)
    assert node.at_start(Written(BUNDLE, OWNED_BY_A), NOW) == (Serve(BUNDLE),)
    assigned = Written(BUNDLE, OwnershipRecord(OwnershipState.ASSIGNING, "a", "b", 7))
    confirmed = Written(BUNDLE, OwnershipRecord(OwnershipState.OWNED, "a", "b", 8, NOW))
    assert node.at_start(assigned, NOW) == (confirmed,)
    assert Participant("a", OwnershipSettings(leaves_assigned_at_start=True)).at_start(assigned, NOW) == ()
    assert Participant("b", SETTINGS).at_start(assigned, NOW) == ()
    assert node.at_start(Written(BUNDLE, OwnershipRecord(OwnershipState.RELEASING, "a", "b")), NOW) == ()


def test_a_division_gives_its_parts_to_the_owner() -> None:
    """Parts first: a part without a record could be assigned to somebody else as soon as the boundaries name it."""
    steps = split_steps(BUNDLE, SPLIT, {BUNDLE: SPLIT}, WHOLE, NOW)
    owned = OwnershipRecord(OwnershipState.OWNED, "a", None, 1, NOW)
    assert steps.children == (Written(f"t/n/{LEFT.name}", owned), Written(f"t/n/{RIGHT.name}", owned))
    assert (steps.failure, steps.boundaries) == (None, HALVES)
    assert steps.deleted == Written(BUNDLE, OwnershipRecord(OwnershipState.DELETED, None, "a", 4, NOW))


def test_a_division_can_be_repeated() -> None:
    """A node that takes a split over finds it half done, and does the rest."""
    record = replace(SPLIT, source="b", version=4, is_forced=True)
    moved = OwnershipRecord(OwnershipState.OWNED, "c", None, 5)
    steps = split_steps(BUNDLE, record, {f"t/n/{LEFT.name}": moved}, HALVES, NOW)
    assert [each.bundle_id for each in steps.children] == [f"t/n/{RIGHT.name}"]
    assert (steps.failure, steps.boundaries) == (None, None)
    assert steps.deleted == Written(BUNDLE, OwnershipRecord(OwnershipState.DELETED, None, "b", 5, NOW))


@pytest.mark.parametrize(
    ("children", "boundaries", "failure"),
    [
        ((LEFT, RIGHT), Boundaries((0, 0x40000000, LAST_HASH)), "neither"),
        ((LEFT, RIGHT), Boundaries((0, 0x80000000, 0xC0000000, LAST_HASH)), "neither"),
        ((LEFT, HashRange(0x90000000, LAST_HASH)), WHOLE, "does not divide"),
        ((LEFT, HashRange(0x80000000, 0x90000000)), WHOLE, "does not divide"),
        ((HashRange(0, LAST_HASH),), WHOLE, "does not divide"),
        ((), WHOLE, "an empty list does not divide"),
        ((), HALVES, "neither"),
    ],
)
def test_a_division_that_does_not_fit_fails(
    children: tuple[HashRange, ...], boundaries: Boundaries, failure: str
) -> None:
    """The bundle stays *Splitting*, and the leader's search finds it after a while."""
    record = requests.split(OWNED_BY_A, "a", {each.name: None for each in children}, NOW)
    steps = split_steps(BUNDLE, record, {BUNDLE: record}, boundaries, NOW)
    assert steps.failure is not None
    assert failure in steps.failure
    assert (steps.boundaries, steps.deleted) == (None, None)
    assert [each.bundle_id for each in steps.children] == [
        f"t/n/{each.name}" for each in children if each != WHOLE.ranges[0]
    ]


def test_changed_boundaries_are_tried_seven_times() -> None:
    """Somebody else may split a neighbour at the same time."""
    assert [retry_delay_ms(attempts) for attempts in (1, 6, 7)] == [100, 100, None]
