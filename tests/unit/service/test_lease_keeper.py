"""The keeper of the lease between its machine and a store that refuses what it is asked."""

import time

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controlplane.adapters.system_clock import SystemClock
from controlplane.adapters.system_threads import SystemThreads
from controlplane.config import LeaseConfig
from controlplane.core.election.messages import ElectionEvent, GiveBackAsked, StoreSilent
from controlplane.core.values.machine import Woke
from controlplane.errors import ConfigurationError, LeaseStoreUnavailableError
from controlplane.service.lease_keeper import LeaseKeeper
from controlplane.service.lease_notes import LeaseNotes
from controlplane.service.lease_profiles import OwnLease
from controlplane.service.metrics import ControllerMetrics
from controlplane.testing import MemoryLeaseServer, MemoryLeaseStore, VirtualClock
from controlplane.testing.memory_controllers import RunningController
from tests.helpers.memory_cluster import ObservedCluster
from tests.helpers.polling import poll_until

LEASE = LeaseConfig()
ROTATED = "Redis refuses the credentials of user 'controller'"


def test_a_controller_that_is_refused_from_the_beginning_ends() -> None:
    """Nobody has to look for the reason in a log: the process says it and is gone."""
    with ObservedCluster() as world:
        world.leases.refusal = ROTATED
        refused = world.start("c1")
        _wait_for_end(refused)
        assert isinstance(refused.failure, ConfigurationError)
        assert str(refused.failure) == ROTATED


def test_a_store_that_begins_to_refuse_ends_nobody() -> None:
    """A password that was changed, or rights for a moment: the leader leads on, and elections go on afterwards."""
    with ObservedCluster() as world, capture_logs() as logs:
        leader = world.start("c1")
        world.wait_until(world.table)
        standby = world.start("c2")
        time.sleep(0.5)  # it has asked
        for refusal in (ROTATED, "Redis denies user 'controller' a command"):
            world.leases.refusal = refusal
            time.sleep(0.5)  # longer than the lease
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        assert {decision.term for decision in world.decisions()} == {1}
        assert leader.alive
        assert standby.alive
        told = [each for each in logs if each["event"] == "lease store refuses"]
        assert len(told) == 4  # two controllers, two refusals
        assert all(each["log_level"] == "error" for each in told)
        assert {each["error"] for each in told} == {ROTATED, refusal}
        world.leases.refusal = ""
        leader.end()
        world.wait_until(lambda: world.decisions()[-1].controller_id == "c2")


class ScriptedProfile:
    """Asks the store again and again, as long as the script has something that comes of it."""

    term = None
    confirmed_at_ms = -1
    is_handed_over = False

    def __init__(self, script: list[Exception | None], registry: CollectorRegistry) -> None:
        self.script = script
        self.reachable: list[float | None] = []
        """What the metric says before each request."""
        self._registry = registry

    @property
    def next_wake_at_ms(self) -> int:
        """At once, as long as there is something left."""
        return 0 if self.script else SystemClock().monotonic_ms() + 60_000

    def on_event(self, event: object) -> tuple[str, ...]:
        """Ask."""
        return ("ask",) if self.script and isinstance(event, Woke) else ()

    def perform(self, _: str) -> None:
        """Answer as the script says."""
        self.reachable.append(self._registry.get_sample_value("controlplane_lease_store_reachable"))
        error = self.script.pop(0)
        if error is not None:
            raise error


def keeper_of(profile: ScriptedProfile, metrics: ControllerMetrics) -> LeaseKeeper:
    """A keeper by this script, with a store for its notes."""
    notes = LeaseNotes(MemoryLeaseStore(MemoryLeaseServer(VirtualClock())), SystemClock(), "c1", lambda: 0, lambda: 0)
    return LeaseKeeper(
        profile, SystemClock(), SystemThreads(), metrics=metrics, store_timeout_ms=400, rest_ms=0, notes=notes
    )


def test_a_leader_marks_how_far_its_log_reaches() -> None:
    """The mark names a decision that is committed, under the term in which it was."""
    with ObservedCluster() as world:
        world.start("c1")
        world.join("n1")
        world.wait_until(lambda: set(world.owners().values()) == {"n1"})
        last = world.decisions()[-1]
        world.wait_until(lambda: world.leases.mark is not None and world.leases.mark.seq >= last.seq)
        assert world.leases.mark == (last.log_id, last.term, world.decisions()[-1].seq)


def test_what_changes_about_the_store_is_told_once() -> None:
    """Twice a second for hours it would hide everything else; how a store is silent differs each time."""
    silent, refused, otherwise = LeaseStoreUnavailableError, ConfigurationError(ROTATED), ConfigurationError("no")
    first: list[Exception | None] = [None, silent("a"), silent("b"), refused, refused, otherwise]
    script = [*first, silent("c"), None, None, refused, None]
    registry = CollectorRegistry()
    profile = ScriptedProfile(script, registry)
    metrics = ControllerMetrics(registry)
    keeper = keeper_of(profile, metrics)
    with capture_logs() as logs:
        keeper.start()
        poll_until(lambda: not profile.script)
        keeper.stop()
    assert [(each["log_level"], each.get("error")) for each in logs] == [
        ("warning", "a"),
        ("error", ROTATED),
        ("error", "no"),
        ("warning", "c"),
        ("info", None),
        ("error", ROTATED),
        ("info", None),
    ]
    assert profile.reachable == [1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0]
    assert registry.get_sample_value("controlplane_lease_store_reachable") == 1


def test_a_take_over_that_is_refused_the_logs_name_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store has granted the lease, so it is a slip there: were it an end, the controllers would end one by one."""
    asked: list[str] = []

    def refuse(_: MemoryLeaseStore) -> str:
        asked.append("log id")
        raise ConfigurationError(ROTATED)

    with ObservedCluster() as world:
        first = world.start("c1")
        world.wait_until(world.table)
        second = world.start("c2")
        with monkeypatch.context() as patch:
            patch.setattr(MemoryLeaseStore, "read_log_id", refuse)
            patch.setattr(MemoryLeaseStore, "write_log_id", lambda store, _: refuse(store))
            first.end()
            world.wait_until(lambda: asked)
            time.sleep(0.1)
        assert second.alive
        world.wait_until(lambda: world.decisions()[-1].controller_id == "c2")


def test_others_wait_no_whole_lease_for_one_that_was_given_back_in_vain() -> None:
    """The store did not hear of it, or could not say so: it is told again while its last holder stands aside."""
    clock = VirtualClock()
    server = MemoryLeaseServer(clock)
    giving, other = _profile("c1", server, clock), _profile("c2", server, clock)
    _tell(giving, Woke())
    server.available = False
    _tell(giving, GiveBackAsked(60_000))
    server.available = True
    clock.advance(LEASE.renew_interval_ms)
    assert giving.next_wake_at_ms == clock.monotonic_ms()
    _tell(giving, Woke())
    assert giving.next_wake_at_ms == 60_000
    _tell(other, Woke())
    assert other.term == 2


def test_processes_of_one_name_do_not_take_the_lease_from_each_other() -> None:
    """One leads and renews; the other stands by as anybody else does, says once what is wrong, and follows."""
    clock = VirtualClock()
    server = MemoryLeaseServer(clock)
    first, second = (_profile("c1", server, clock, process) for process in ("first", "second"))
    with capture_logs() as logs:
        for _ in range(5 * 60 * 4):
            _tell(first, Woke())
            _tell(second, Woke())
            clock.advance(250)
        assert (first.term, second.term, server.lease.term) == (1, None, 1)
        assert [(each["log_level"], each["controller"], each["holder_process"]) for each in logs] == [
            ("warning", "c1", "first")
        ]
        assert "give each controller a --controller-id of its own" in logs[0]["event"]
        _tell(first, GiveBackAsked(60_000))
        clock.advance(500)
        _tell(second, Woke())
        assert second.term == 2
        clock.advance(60_000)
        _tell(second, Woke())
        _tell(first, Woke())
        assert (first.term, len(logs)) == (None, 2)
        assert logs[1]["holder_process"] == "second"


def test_a_leader_that_was_killed_waits_out_its_own_lease() -> None:
    """Nobody can tell it from another process of its name; and it says so once."""
    clock = VirtualClock()
    server = MemoryLeaseServer(clock)
    _tell(_profile("c1", server, clock, "killed"), Woke())
    restarted = _profile("c1", server, clock, "restarted")
    with capture_logs() as logs:
        while clock.monotonic_ms() < LEASE.duration_ms:
            assert restarted.term is None
            clock.advance(restarted.next_wake_at_ms - clock.monotonic_ms())
            _tell(restarted, Woke())
    assert (restarted.term, clock.monotonic_ms()) == (2, LEASE.duration_ms)
    assert len(logs) == 1


def _profile(name: str, server: MemoryLeaseServer, clock: VirtualClock, process: str = "") -> OwnLease:
    store = MemoryLeaseStore(server, process)
    return OwnLease(store, clock, name, LEASE, stop_when_store_is_lost=False, is_ready=lambda: True)


def _tell(profile: OwnLease, event: ElectionEvent) -> None:
    """As the keeper does."""
    waiting = list(profile.on_event(event))
    while waiting:
        try:
            answer = profile.perform(waiting.pop(0))
        except LeaseStoreUnavailableError:
            answer = StoreSilent()
        waiting += profile.on_event(answer) if answer is not None else ()


def _wait_for_end(controller: RunningController) -> None:
    deadline_s = time.monotonic() + 10
    while controller.alive and time.monotonic() < deadline_s:
        time.sleep(0.02)
