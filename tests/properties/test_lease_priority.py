"""Preferred controllers in virtual time: one that lasts leads in the end, one that comes and goes moves little."""

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st

from controlplane.config import LeaseConfig
from controlplane.core.election.messages import Release, StoreSilent
from controlplane.core.values.machine import Woke
from controlplane.errors import LeaseStoreUnavailableError
from controlplane.service.lease_profiles import OwnLease
from controlplane.testing import MemoryLeaseServer, MemoryLeaseStore, VirtualClock

HANDOVER_AFTER_MS = 20_000
STEP_MS = 50
BASE = LeaseConfig(handover_after_ms=HANDOVER_AFTER_MS)
REMEMBERED_MS = BASE.duration_ms + BASE.renew_interval_ms
"""For so long the store remembers who has asked, and a leader what the store has said of it."""
LONGEST_WITHOUT_LEADER_MS = BASE.duration_ms + BASE.duration_ms // 2 + 2 * BASE.renew_interval_ms + 2 * STEP_MS
"""The lease, the wait of who is outranked, and what lies between two questions."""


@dataclass
class Process:
    """A controller: its profile while it lives."""

    name: str
    priority: int
    profile: OwnLease | None = None
    started_at_ms: int = 0
    seen_at_ms: int = 0


class Cluster:
    """Some controllers of different priorities over one lease, stepped together."""

    def __init__(self, *priorities: int) -> None:
        self.clock = VirtualClock()
        self.server = MemoryLeaseServer(self.clock)
        self.processes = [Process(f"c{number}", priority) for number, priority in enumerate(priorities)]
        self.handed_over_at_ms: list[int] = []
        self.leaders_seen: list[str] = []
        self.without_leader_ms = 0

    def start(self, process: Process) -> None:
        """It begins to stand."""
        config = LeaseConfig(priority=process.priority, handover_after_ms=HANDOVER_AFTER_MS)
        store = MemoryLeaseStore(self.server, f"{process.name}, since {self.clock.monotonic_ms()}")
        process.started_at_ms = self.clock.monotonic_ms()
        process.profile = OwnLease(
            store, self.clock, process.name, config, stop_when_store_is_lost=False, is_ready=lambda: True
        )

    def run(self, milliseconds: int) -> None:
        """Let time pass."""
        for _ in range(0, milliseconds, STEP_MS):
            for process in self.processes:
                if process.profile is not None:
                    process.seen_at_ms = self.clock.monotonic_ms()
                    self._wake(process.profile)
            self.clock.advance(STEP_MS)
            leaders = list(self.leaders())
            assert len(leaders) <= 1
            somebody = any(process.profile is not None for process in self.processes)
            self.without_leader_ms = 0 if leaders or not somebody else self.without_leader_ms + STEP_MS
            assert self.without_leader_ms <= LONGEST_WITHOUT_LEADER_MS
            if leaders and self.leaders_seen[-1:] != leaders:
                self.leaders_seen += leaders

    def leaders(self) -> Iterator[str]:
        """Who holds the lease and lives."""
        for process in self.processes:
            if process.profile is not None and process.profile.term is not None:
                yield process.name

    def _wake(self, profile: OwnLease) -> None:
        actions = list(profile.on_event(Woke()))
        while actions:
            action = actions.pop(0)
            if isinstance(action, Release):
                now_ms = self.clock.monotonic_ms()
                self.handed_over_at_ms.append(now_ms)
                others = [each for each in self.processes if each.profile is not profile]
                # It may have died just now: nobody can know yet.
                lasting = [each for each in others if now_ms - each.seen_at_ms <= REMEMBERED_MS]
                assert any(now_ms - each.started_at_ms >= HANDOVER_AFTER_MS for each in lasting), "to one just started"
            try:
                answer = profile.perform(action)
            except LeaseStoreUnavailableError:
                answer = StoreSilent()
            if answer is not None:
                actions += profile.on_event(answer)


def test_the_preferred_controller_leads_in_the_end_and_keeps_leading() -> None:
    """Once it has stood by for long enough, and then nothing moves any more."""
    cluster = Cluster(1, 5, 3)
    cluster.start(cluster.processes[0])
    cluster.run(3_000)
    for process in cluster.processes[1:]:
        cluster.start(process)
    cluster.run(120_000)
    assert cluster.leaders_seen == ["c0", "c1"]
    assert len(cluster.handed_over_at_ms) == 1


def test_the_preferred_one_of_two_standbys_follows_a_dead_leader() -> None:
    """Both ask when the lease ends; the other one leaves it alone."""
    for start_order in ((1, 2), (2, 1)):
        cluster = Cluster(9, 1, 5)
        for number in (0, *start_order):
            cluster.start(cluster.processes[number])
            cluster.run(330)
        cluster.processes[0].profile = None
        cluster.run(5_000)
        assert cluster.leaders_seen == ["c0", "c2"]


def test_a_lone_controller_waits_half_a_lease_for_a_preferred_one_that_is_gone() -> None:
    """Bounded: the dead are waited for once, and the absent not at all."""
    cluster = Cluster(9, 1)
    for process in cluster.processes:
        cluster.start(process)
    cluster.run(1_000)
    cluster.processes[0].profile = None
    cluster.run(BASE.duration_ms + BASE.duration_ms // 2 + BASE.renew_interval_ms + STEP_MS)
    assert list(cluster.leaders()) == ["c1"]


@settings(max_examples=25, deadline=None)
@example([(True, 20_351), (False, 101)])
@given(st.lists(st.tuples(st.booleans(), st.integers(100, 30_000)), max_size=12))
def test_a_preferred_controller_that_comes_and_goes_moves_little(lives: list[tuple[bool, int]]) -> None:
    """However it flaps: never two hand-overs within the declared time, and never one to somebody who was just away."""
    cluster = Cluster(1, 5)
    steady, flapping = cluster.processes
    cluster.start(steady)
    cluster.run(1_000)
    for lives_now, for_ms in lives:
        if lives_now and flapping.profile is None:
            cluster.start(flapping)
        elif not lives_now:
            flapping.profile = None
        cluster.run(for_ms)
    pairs = zip(cluster.handed_over_at_ms, cluster.handed_over_at_ms[1:], strict=False)
    assert all(later - earlier >= HANDOVER_AFTER_MS for earlier, later in pairs)
    assert all(at_ms >= HANDOVER_AFTER_MS for at_ms in cluster.handed_over_at_ms)
    # The steady one loses the lease by handing it over, and never otherwise.
    assert cluster.leaders_seen.count("c1") <= len(cluster.handed_over_at_ms)
