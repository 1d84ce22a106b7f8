"""What every store of SOFARegistry's lock promises: the SQL itself, in memory, and in Valkey.

A module that runs this suite has a fixture ``world``, a lock store for each test, on a virtual clock.
"""

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st

from controlplane.core.election.lock_record import LockReading, LockRecord
from controlplane.ports import LockStore
from tests.helpers.lock_worlds import LockWorld

DURATION_MS = 20_000


def row_of(store: LockStore) -> LockRecord:
    """The row, which has to be there."""
    record = store.read().record
    assert record is not None
    return record


class LockContract:
    """``distribute_lock``: one row for each data centre and lock name."""

    def test_no_row_is_told_with_the_time(self, world: LockWorld) -> None:
        """A follower judges by the store's own time, which comes with every answer."""
        assert world.open_store().read() == LockReading(None, world.clock.wall_ms())

    @pytest.mark.parametrize("first_term", [0, 1])
    def test_the_first_insert_makes_the_row(self, world: LockWorld, first_term: int) -> None:
        """Every column is there, with the store's time, and with the term that a new row begins with."""
        store = world.open_store()
        now_ms = world.clock.wall_ms()
        assert store.insert("a", DURATION_MS, first_term)
        assert row_of(store) == LockRecord("dc", "lock", "a", DURATION_MS, now_ms, now_ms, first_term, 0)

    def test_a_second_insert_does_nothing(self, world: LockWorld) -> None:
        """It fails in silence: the row that is read back names the owner."""
        world.open_store().insert("a", DURATION_MS, 0)
        before = row_of(world.open_store())
        world.let_time_pass(90_000)
        assert not world.open_store().insert("b", 5_000, 1)
        assert row_of(world.open_store()) == before

    @pytest.mark.parametrize(
        ("first_ms", "elapsed_ms", "is_over"),
        [
            # Modified on a full second: 20 s and any part of the next one are not more than 20 s.
            (0, 20_000, False),
            (0, 20_999, False),
            (0, 21_000, True),
            # Modified at .900: the statement's own time has no milliseconds, so 21.0 s later only 20 have passed.
            (900, 20_900, False),
            (900, 21_000, False),
            (900, 21_099, False),
            (900, 21_100, True),
            # Modified at .001: one second more, and then 21.999 s are 21.
            (1, 21_998, False),
            (1, 21_999, True),
        ],
    )
    def test_a_lock_is_taken_over_after_whole_seconds(
        self, world: LockWorld, first_ms: int, elapsed_ms: int, *, is_over: bool
    ) -> None:
        """``timestampdiff(SECOND, gmt_modified, NOW()) > duration/1000``: in practice 21 to 22 s."""
        world.let_time_pass(-world.clock.wall_ms() % 1_000 + first_ms)
        store = world.open_store()
        store.insert("a", DURATION_MS, 0)
        seen = row_of(store)
        world.let_time_pass(elapsed_ms)
        assert store.take_over("b", seen) == is_over
        now_ms = world.clock.wall_ms()
        after = seen._replace(owner="b", gmt_modified_ms=now_ms, term=1, term_duration=0) if is_over else seen
        assert row_of(store) == after

    def test_of_two_that_saw_the_same_row_one_takes_over(self, world: LockWorld) -> None:
        """The first compare-and-set wins, and the second changes nothing."""
        first, second = world.open_store(), world.open_store()
        first.insert("a", DURATION_MS, 0)
        world.let_time_pass(25_000)
        seen, seen_too = row_of(first), row_of(second)
        assert first.take_over("b", seen)
        won = row_of(first)
        assert (won.owner, won.term) == ("b", 1)
        assert not second.take_over("c", seen_too)
        assert row_of(second) == won

    @pytest.mark.parametrize("change", [{"owner": "x"}, {"term": 7}, {"term_duration": 7}])
    def test_a_row_that_is_not_as_seen_is_not_taken_over(self, world: LockWorld, change: dict[str, object]) -> None:
        """Owner, term and number of renewals all have to be as they were read."""
        store = world.open_store()
        store.insert("a", DURATION_MS, 0)
        world.let_time_pass(25_000)
        seen = row_of(store)
        assert not store.take_over("b", seen._replace(**change))  # type: ignore[arg-type] # columns of the row
        assert row_of(store) == seen

    def test_the_duration_of_a_take_over_is_the_one_that_was_seen(self, world: LockWorld) -> None:
        """It is a parameter of the statement and is not compared with the row."""
        store = world.open_store()
        store.insert("a", DURATION_MS, 0)
        world.let_time_pass(3_000)
        assert store.take_over("b", row_of(store)._replace(duration_ms=1_000))
        assert row_of(store).duration_ms == DURATION_MS

    @pytest.mark.parametrize("guarded", [False, True])
    def test_a_renewal_counts_and_dates(self, world: LockWorld, *, guarded: bool) -> None:
        """The owner's row is dated anew, and its renewals are counted up."""
        store = world.open_store()
        store.insert("a", DURATION_MS, 0)
        for count in (1, 2):
            world.let_time_pass(1_234)
            seen = row_of(store)
            assert store.renew(seen, guarded=guarded)
            assert row_of(store) == seen._replace(gmt_modified_ms=world.clock.wall_ms(), term_duration=count)

    def test_a_renewal_by_owner_looks_at_nothing_else(self, world: LockWorld) -> None:
        """The hole of 2022: an old life of the same owner keeps the lock, and even one that has run out."""
        store = world.open_store()
        store.insert("a", DURATION_MS, 0)
        stale = row_of(store)._replace(term=9, term_duration=9)
        world.let_time_pass(100_000)
        assert store.renew(stale, guarded=False)
        assert row_of(store).term_duration == 1
        assert not store.renew(stale._replace(owner="b"), guarded=False)

    @pytest.mark.parametrize("change", [{"owner": "x"}, {"term": 7}, {"term_duration": 7}])
    def test_a_guarded_renewal_wants_the_row_as_seen(self, world: LockWorld, change: dict[str, object]) -> None:
        """As in the article: what somebody else has touched is no longer one's own."""
        store = world.open_store()
        store.insert("a", DURATION_MS, 0)
        seen = row_of(store)
        assert not store.renew(seen._replace(**change), guarded=True)  # type: ignore[arg-type] # columns of the row
        assert row_of(store) == seen

    @pytest.mark.parametrize(("elapsed_ms", "in_time"), [(19_999, True), (20_000, False), (30_000, False)])
    def test_a_guarded_renewal_comes_in_time(self, world: LockWorld, elapsed_ms: int, *, in_time: bool) -> None:
        """``< duration/1000`` in whole seconds: who was silent for the whole lock has lost it."""
        world.let_time_pass(-world.clock.wall_ms() % 1_000)
        store = world.open_store()
        store.insert("a", DURATION_MS, 0)
        world.let_time_pass(elapsed_ms)
        assert store.renew(row_of(store), guarded=True) == in_time

    def test_force_refresh_gives_the_owner_another_duration(self, world: LockWorld) -> None:
        """Duration and time are set; term and renewals stay; others' rows are not touched."""
        store = world.open_store()
        store.insert("a", DURATION_MS, 0)
        seen = row_of(store)
        world.let_time_pass(5_000)
        assert not store.force_refresh("b", 1_000)
        assert row_of(store) == seen
        assert store.force_refresh("a", 60_000)
        assert row_of(store) == seen._replace(duration_ms=60_000, gmt_modified_ms=world.clock.wall_ms())

    def test_rows_are_kept_apart_by_data_center_and_name(self, world: LockWorld) -> None:
        """Also where the two together read alike; and all of them can be looked at."""
        keys = [("a", "b:c"), ("a:b", "c"), ("dc", "META-MASTER"), ("数据中心", "{x}/%")]
        for owner, key in enumerate(keys):
            assert world.open_store(*key).insert(f"owner {owner}", DURATION_MS, 0)
        for owner, key in enumerate(keys):
            record = row_of(world.open_store(*key))
            assert (record.data_center, record.lock_name, record.owner) == (*key, f"owner {owner}")
        readings = world.open_store().read_all()
        assert {(each.record.data_center, each.record.lock_name) for each in readings if each.record} == set(keys)
        assert {each.store_now_ms for each in readings} == {world.clock.wall_ms()}

    def test_statements_on_no_row_change_nothing(self, world: LockWorld) -> None:
        """An update does not make a row, whoever asks; lost data are an empty table."""
        store = world.open_store()
        store.insert("a", 1_000, 0)
        seen = row_of(store)
        world.lose_data()
        world.let_time_pass(5_000)
        assert not store.take_over("b", seen)
        assert not store.renew(seen, guarded=False)
        assert not store.force_refresh("a", 1_000)
        assert store.read().record is None
        assert store.read_all() == []


@dataclass(frozen=True, slots=True)
class LockStep:
    """One statement of one controller, or something that happens to the store."""

    kind: str
    controller: str
    value: int


lock_steps = st.lists(
    st.builds(
        LockStep,
        kind=st.sampled_from(
            ["read", "read", "insert", "take_over", "take_over", "renew", "guarded", "force", "pass", "pass", "lose"]
        ),
        controller=st.sampled_from(["a", "b", "c"]),
        value=st.sampled_from([0, 1, 400, 999, 1_000, 1_001, 2_000, 2_100, 2_999, 3_000, 5_000]),
    ),
    max_size=40,
)
"""What three controllers do with a lock of two seconds; each acts on the row as it last read it."""


def check_lock_history(world: LockWorld, oracle: LockWorld, history: list[LockStep]) -> None:
    """The store answers and ends like the SQL statements, step by step."""
    stores = world.open_store(), oracle.open_store()
    seen: dict[str, LockRecord] = {}
    for step in history:
        record = seen.get(step.controller)
        match step.kind:
            case "read":
                readings = [store.read() for store in stores]
                assert readings[0] == readings[1]
                if readings[0].record is not None:
                    seen[step.controller] = readings[0].record
            case "insert":
                made = [store.insert(step.controller, 2_000, step.value % 2) for store in stores]
                assert made[0] == made[1]
            case "take_over" if record is not None:
                taken = [store.take_over(step.controller, record) for store in stores]
                assert taken[0] == taken[1]
            case "renew" | "guarded" if record is not None:
                renewed = [store.renew(record, guarded=step.kind == "guarded") for store in stores]
                assert renewed[0] == renewed[1]
            case "force":
                forced = [store.force_refresh(step.controller, step.value + 1) for store in stores]
                assert forced[0] == forced[1]
            case "pass":
                for each in (world, oracle):
                    each.let_time_pass(step.value)
            case "lose":
                for each in (world, oracle):
                    each.lose_data()
            case _:
                assert record is None, f"no step {step.kind}"  # a lock that was never read is not renewed
        assert stores[0].read() == stores[1].read(), step
