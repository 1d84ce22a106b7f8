"""``controlplane leader``: who leads, by which lease profile; and what is asked of the leader."""

import json

import pytest

from controlplane.adapters.memory import MemoryLeaseServer, MemoryLeaseStore, MemoryLockServer, MemoryLockStore
from controlplane.bootstrap import controllers
from controlplane.cli.failures import ExitStatus
from controlplane.config import ControllerConfig, LeaseConfig, SofaLeaseConfig, SofaRenewal
from controlplane.core.identifiers import Term
from tests.helpers.answering import answering_leader
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ControllerConfig]:
    """The settings of controllers, which end where they would begin to follow."""
    configs: list[ControllerConfig] = []
    monkeypatch.setattr(controllers, "run_controller", lambda config, *_: configs.append(config))
    return configs


def test_every_field_of_the_lock_is_shown(
    cluster_command: RunCommand, world: PublishedWorld, lock_server: MemoryLockServer
) -> None:
    """Who comes from SOFARegistry finds the row that he knows, and what follows from it."""
    store = MemoryLockStore(lock_server, "dc1", "META-MASTER")
    store.insert("c2", 20_000, 1)
    row = store.read().record
    assert row is not None
    store.renew(row, guarded=False)
    world.clock.advance(3_000)
    ran = cluster_command("leader", "show", "--format", "json")
    shown = json.loads(ran.out)
    assert ran.status == ExitStatus.DONE
    assert (shown["lease_profile"], shown["lease_owner"], shown["lease_term"]) == ("sofa", "c2", 1)
    assert (shown["lease_remaining_ms"], shown["opened_by"]) == (17_000, "c1")
    (lock,) = shown["locks"]
    assert (lock["data_center"], lock["lock_name"], lock["owner"]) == ("dc1", "META-MASTER", "c2")
    assert (lock["duration_ms"], lock["term"], lock["term_duration"]) == (20_000, 1, 1)
    assert lock["gmt_create"] == lock["gmt_modified"]
    assert (lock["leader_epoch"], lock["leads_for_ms"], lock["runs_out_in_ms"]) == (row.gmt_modified_ms, 7_000, 17_000)
    lines = cluster_command("leader", "show").out.splitlines()
    assert lines[2].split() == [
        *("data", "center", "lock", "name", "owner", "duration", "ms", "gmt", "create", "gmt", "modified", "term"),
        *("term", "duration", "leader", "epoch", "leads", "for", "ms", "runs", "out", "in", "ms"),
    ]


def test_a_lock_that_has_run_out_leads_nobody(
    cluster_command: RunCommand, world: PublishedWorld, lock_server: MemoryLockServer, lease_server: MemoryLeaseServer
) -> None:
    """The row stays for ever; and the default's lease goes before a lock, since a cluster has one or the other."""
    MemoryLockStore(lock_server, "dc1", "META-MASTER").insert("c2", 20_000, 1)
    world.clock.advance(20_001)
    ran = cluster_command("leader", "show", "--format", "json")
    assert ran.status == ExitStatus.UNREACHABLE
    assert json.loads(ran.out)["lease_profile"] is None
    MemoryLeaseStore(lease_server).acquire("c3", Term(0), 2_000)
    assert json.loads(cluster_command("leader", "show", "--format", "json").out)["lease_profile"] == "default"


def test_standbys_are_shown_the_most_preferred_first(
    cluster_command: RunCommand, lease_server: MemoryLeaseServer
) -> None:
    """Who would follow, and for how long it has stood by."""
    store = MemoryLeaseStore(lease_server, "3f9a12bc")
    for owner, priority in (("c1", 1), ("c2", 0), ("c3", 4), ("c4", 4)):
        store.acquire(owner, Term(0), 2_000, priority)
    shown = json.loads(cluster_command("leader", "show", "--format", "json").out)
    assert (shown["lease_owner"], shown["lease_process"]) == ("c1", "3f9a12bc")
    assert [(each["contender"], each["priority"]) for each in shown["contenders"]] == [("c3", 4), ("c4", 4), ("c2", 0)]
    assert "contender  priority  present ms  asked ms ago" in cluster_command("leader", "show").out


def test_force_refresh_sets_the_owners_duration(
    cluster_command: RunCommand, world: PublishedWorld, lock_server: MemoryLockServer
) -> None:
    """Only for the owner that was named; who else it is is said."""
    store = MemoryLockStore(lock_server, "DefaultDataCenter", "META-MASTER")
    store.insert("c2", 20_000, 0)
    refused = cluster_command("leader", "force-refresh", "c1", "--duration-ms", "1000")
    assert refused.status == ExitStatus.FAILED
    assert "its owner is 'c2'" in refused.err
    absent = cluster_command("leader", "force-refresh", "c2", "--duration-ms", "1000", "--lock-name", "x")
    assert (absent.status, "there is none" in absent.err) == (ExitStatus.FAILED, True)
    assert cluster_command("leader", "force-refresh", "c2", "--duration-ms", "1000").status == ExitStatus.DONE
    record = store.read().record
    assert record is not None
    assert record.duration_ms == 1_000


def test_a_controller_is_told_how_to_stand(cluster_command: RunCommand, started: list[ControllerConfig]) -> None:
    """Every setting of an election can be reached from the command line."""
    cluster_command("controller", "run")
    cluster_command("controller", "run", "--lease-duration-ms", "3000", "--stop-when-lease-store-is-lost",
                    "--priority", "7", "--handover-after-ms", "9000")  # fmt: skip
    settings = ("data_center=dc1", "lock_name=L", "duration_ms=10000", "renewal=guarded", "first_term=1")
    options = [word for setting in settings for word in ("--lease-setting", setting)]
    cluster_command("controller", "run", "--lease-profile", "sofa", *options)
    default, own, sofa = started
    assert (default.lease, default.sofa_lease, default.stop_when_lease_store_is_lost) == (LeaseConfig(), None, False)
    assert (own.lease.duration_ms, own.stop_when_lease_store_is_lost) == (3_000, True)
    assert (own.lease.priority, own.lease.handover_after_ms) == (7, 9_000)
    assert sofa.sofa_lease == SofaLeaseConfig("dc1", "L", 10_000, renewal=SofaRenewal.GUARDED, first_term=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lease-profile", "sofa", "--priority", "1"], "--priority is not known to --lease-profile sofa"),
        (["--lease-profile", "sofa", "--handover-after-ms", "9000"], "--handover-after-ms is not known to --lease-p"),
        (["--lease-profile", "sofa", "--stop-when-lease-store-is-lost"], "--stop-when-lease-store-is-lost is not kn"),
        (["--handover-after-ms", "100"], "at least a lease"),
        (["--lease-duration-ms", "1399"], "take a duration of 1,400 ms or more"),
        (["--lease-setting", "first_term=1"], "belongs to --lease-profile sofa"),
        (["--lease-profile", "sofa", "--lease-setting", "first_term=2"], "0 or 1"),
        (["--lease-profile", "sofa", "--lease-setting", "renewal=never"], "renewal"),
        (["--lease-profile", "sofa", "--lease-setting", "term=2"], "write NAME=VALUE"),
    ],
)
def test_settings_that_no_election_has_are_refused(
    cluster_command: RunCommand, started: list[ControllerConfig], words: list[str], message: str
) -> None:
    """At the start, in a sentence, before anything is written."""
    ran = cluster_command("controller", "run", *words)
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert message in ran.err
    assert started == []


def test_the_leader_is_asked_to_resign_by_its_name(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """One that was elected meanwhile was not meant: the name is sent along, and the answer stands in the log."""
    with answering_leader(world):
        ran = cluster_command("leader", "resign", "--reason", "night", "--format", "json")
        other = cluster_command("leader", "resign", "--controller", "c9")
    assert ran.status == ExitStatus.DONE
    assert json.loads(ran.out)["detail"] == "'c1' resigns from term 1 (reason given: night)"
    assert other.status == ExitStatus.FAILED
    assert "'c1' leads, not 'c9'" in other.out
    dry = cluster_command("leader", "resign", "--dry-run")
    assert (dry.status, "resigns from term 1" in dry.out) == (ExitStatus.DONE, True)
    assert cluster_command("log", "verify").status == ExitStatus.DONE


def test_history_tells_who_led_and_why_it_ended(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """Resigned, taken over, led again by the same: as far as the log can tell."""
    world.admit("n1")
    world.run(3_000, ("n1",))
    world.open_term(Term(2), controller_id="c2")
    world.ask("resign_leader", controller="c2")
    world.run(2_000, ("n1",))
    world.open_term(Term(3), controller_id="c3")
    world.open_term(Term(4), controller_id="c3")
    ran = cluster_command("leader", "history", "--format", "json")
    assert ran.status == ExitStatus.DONE
    rows = json.loads(ran.out)
    assert [(row["term"], row["controller"], row["ended"].split(":")[0]) for row in rows] == [
        (1, "c1", "c2 took over"),
        (2, "c2", "resigned"),
        (3, "c3", "the same controller opened the next"),
        (4, "c3", "the log knows no later term"),
    ]
    assert sum(row["decisions"] for row in rows) == len(world.decisions)
    assert [row["first_seq"] for row in rows[1:]] == [row["first_seq"] + row["decisions"] for row in rows[:-1]]
    assert rows[1]["gap_ms"] >= 2_000
    assert rows[3]["gap_ms"] is None
    assert len(json.loads(cluster_command("leader", "history", "--last", "2", "--format", "json").out)) == 2
