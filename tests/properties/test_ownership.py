"""What always holds for the ownership of bundles, whatever is written."""

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.bundles.ownership_channel import requests
from controlplane.core.bundles.ownership_channel.cleanup import bundles_of_node, plan_clean_up
from controlplane.core.bundles.ownership_channel.conflict import Verdict, judge
from controlplane.core.bundles.ownership_channel.flows import Participant
from controlplane.core.bundles.ownership_channel.lookup import Asker, Deferred, look_up
from controlplane.core.bundles.ownership_channel.lost_nodes import MetadataState
from controlplane.core.bundles.ownership_channel.monitor import find_stuck
from controlplane.core.bundles.ownership_channel.record import OwnershipRecord
from controlplane.core.bundles.ownership_channel.settings import OwnershipSettings
from controlplane.core.bundles.ownership_channel.states import Storage
from controlplane.core.bundles.ownership_channel.table import OwnershipTable, Written, compacted
from controlplane.core.bundles.ownership_state import OwnershipState

NODES = ("a", "b", "c")
SETTINGS = OwnershipSettings()
# A record in state *Init* is not published: a bundle without a record is in this state.
STATES = [state for state in OwnershipState if state is not OwnershipState.INIT]
names = st.sampled_from((None, *NODES))
records = st.builds(
    lambda state, destination, source, version, is_forced, timestamp_ms: OwnershipRecord(
        state,
        destination if source or destination or state is OwnershipState.FREE else "a",
        source,
        version,
        timestamp_ms,
        is_forced,
    ),
    st.sampled_from(STATES),
    names,
    names,
    st.integers(1, 6),
    st.booleans(),
    st.integers(0, 100_000),
)
bundle_ids = st.sampled_from(["t/n/1", "t/n/2", "pulsar/system/1"])
any_writes = st.lists(st.builds(Written, bundle_ids, records), max_size=30)
with_deletions = st.lists(st.builds(Written, bundle_ids, st.none() | records), max_size=30)
tables = st.dictionaries(bundle_ids, records)


@st.composite
def sensible_writes(draw: st.DrawFn) -> list[Written]:
    """What nodes that obey the rules publish: each follows what it has read, and some are late."""
    table, written = OwnershipTable(), list[Written]()
    nodes = [Participant(name, SETTINGS) for name in NODES]
    for step in range(draw(st.integers(0, 20))):
        bundle_id = draw(bundle_ids)
        present = table.records.get(bundle_id)
        node_id, other = draw(st.sampled_from(NODES)), draw(names)
        kind = draw(st.sampled_from(("assign", "unload", "divide", "answer", "answer", "answer")))
        if kind == "assign":
            written.append(Written(bundle_id, requests.assign(present, node_id, step)))
        elif kind == "unload":
            forced = draw(st.booleans())
            written.append(Written(bundle_id, requests.unload(present, node_id, step, other, is_forced=forced)))
        elif kind == "divide":
            written.append(Written(bundle_id, requests.split(present, node_id, {}, step)))
        else:
            for node in nodes:
                answers = node.on_record(Written(bundle_id, present), step)
                written += [each for each in answers if isinstance(each, Written)]
        if draw(st.booleans()):
            table, _ = OwnershipTable().read(written)
    return written


def read(written: Sequence[Written], *, since: OwnershipTable | None = None) -> OwnershipTable:
    """The table of a reader of the topic."""
    return (since or OwnershipTable()).read(written)[0]


@given(with_deletions, st.sampled_from(Storage), st.integers(0, 30))
def test_two_readers_end_with_the_same_table(written: list[Written], storage: Storage, cut: int) -> None:
    """However their reads are divided, and whatever of other bundles is between the records of one."""
    whole, judged = OwnershipTable(storage).read(written)
    first, early = OwnershipTable(storage).read(written[:cut])
    second, late = first.read(written[cut:])
    assert second == whole
    assert early + late == judged
    for bundle_id in {each.bundle_id for each in written}:
        alone, _ = OwnershipTable(storage).read([each for each in written if each.bundle_id == bundle_id])
        assert alone.records.get(bundle_id) == whole.records.get(bundle_id)


@given(with_deletions | sensible_writes(), st.integers(0, 30))
def test_a_reader_of_the_compacted_topic_ends_with_the_same_table(written: list[Written], cut: int) -> None:
    """A node that starts late knows the same owners."""
    assert read((*compacted(written[:cut]), *written[cut:])) == read(written)


@given(any_writes | sensible_writes(), st.integers(0, 30), st.integers(0, 30))
def test_a_slow_reader_is_overtaken_by_compaction_without_harm(written: list[Written], some: int, more: int) -> None:
    """Without deletions: it finds a gap in the versions and takes what is behind it."""
    kept = [each for each in written if each.record is not None]
    start, cut = min(some, more), max(some, more)
    slow = read(kept[:start])
    assert read((*compacted(kept[:cut]), *kept[cut:]), since=slow) == read(kept)


@given(with_deletions | sensible_writes())
def test_compaction_is_idempotent(written: list[Written]) -> None:
    """Compacting what was compacted changes nothing."""
    assert compacted(compacted(written)) == compacted(written)


@given(records, records)
def test_the_store_takes_nothing_that_the_topic_refuses(present: OwnershipRecord, read: OwnershipRecord) -> None:
    """The topic is the more lenient one, and a version never falls in either."""
    in_store = judge(present, read, Storage.METADATA_STORE)
    assert in_store.keeps or not judge(present, read, Storage.SYSTEM_TOPIC).keeps
    assert in_store.keeps or read.version == present.version + 1
    # Of two records with the same version only one is ever taken.
    again = judge(read, present, Storage.SYSTEM_TOPIC)
    assert in_store.keeps or again is Verdict.OLD_VERSION


@given(tables, st.sampled_from(NODES), st.integers(1, 4), st.booleans(), st.data())
def test_a_clean_up_leaves_nothing_to_the_lost_node(
    present: dict[str, OwnershipRecord], lost: str, max_concurrent: int, gracefully: bool, data: st.DataObject
) -> None:
    """All readers take its records; afterwards the node owns nothing, and only has to release what it owned."""
    others = st.sampled_from([None, *(each for each in NODES if each != lost)])
    found = bundles_of_node(present, lost)
    destinations = {each: data.draw(others) for each in (*found.others, *found.system)}
    plan = plan_clean_up(present, lost, destinations, 7, max_concurrent=max_concurrent, gracefully=gracefully)
    batches = (*plan.others, *plan.system)
    assert all(0 < len(batch) <= max_concurrent for batch in batches)
    written = [Written(each.bundle_id, each.record) for batch in batches for each in batch]
    for storage in Storage:
        table, judged = OwnershipTable(storage, present).read(written)
        assert {each.verdict for each in judged} <= {Verdict.FORCED}
        left = bundles_of_node(table.records, lost)
        releasing = {*left.others, *left.system}
        was_split_by = {
            bundle_id
            for bundle_id, record in present.items()
            if record.state is OwnershipState.SPLITTING and record.destination == lost
        }
        states = {table.records[bundle_id].state for bundle_id in releasing - was_split_by}
        assert states <= ({OwnershipState.RELEASING} if gracefully else set())


@given(tables, st.frozensets(st.sampled_from(NODES)), st.integers(0, 10_000_000))
def test_the_search_says_one_thing_about_a_bundle(
    present: dict[str, OwnershipRecord], live: frozenset[str], now_ms: int
) -> None:
    """A bundle of a lost node is not overridden as well: two destinations would be written."""
    found = find_stuck(present, live, now_ms, SETTINGS, MetadataState.STABLE, is_leader=True)
    of_lost = [bundle_id for node in found.inactive for bundle_id in node.bundle_ids]
    named = [*of_lost, *(each.bundle_id for each in (*found.stuck, *found.forgotten))]
    assert len(named) == len(set(named))
    assert not {node.node_id for node in found.inactive} & live
    assert all(present[each.bundle_id].state.is_active for each in found.stuck)
    assert not any(present[each.bundle_id].state.is_active for each in found.forgotten)


@given(st.none() | records, st.sampled_from(NODES), st.frozensets(st.sampled_from(NODES)), st.booleans())
def test_a_look_up_ends_in_time(
    present: OwnershipRecord | None, node_id: str, live: frozenset[str], is_registered: bool
) -> None:
    """Every state has an answer, and a deferral its deadline; a node that knows of nobody never defers."""
    found = look_up(present, Asker(node_id, live, is_registered), 5, 30)
    assert not isinstance(found, Deferred) or (found.until_ms == 35 and is_registered)


def test_every_change_can_end() -> None:
    """From each in-flight state a record of its own nodes leads on, in both storages: nothing is stuck by the rule."""
    ways = {
        OwnershipState.ASSIGNING: ("a", None),
        OwnershipState.RELEASING: ("a", "b"),
        OwnershipState.SPLITTING: (None, "b"),
    }
    for storage, (state, nodes) in product(Storage, ways.items()):
        present = OwnershipRecord(state, *nodes, version=3)
        answers = [
            each for name in NODES for each in Participant(name, SETTINGS).on_record(Written("t/n/1", present), 4)
        ]
        published = [each.record for each in answers if isinstance(each, Written)]
        if state is OwnershipState.SPLITTING:
            published = [OwnershipRecord(OwnershipState.DELETED, None, "b", 4)]
        assert [judge(present, each, storage) for each in published] == [Verdict.VALID]
