"""``controlplane leader``: who leads, by which lease profile; and what is asked of the leader."""

import json
from pathlib import Path

import pytest

from controlplane.bootstrap import controllers
from controlplane.cli.common.failures import ExitStatus
from controlplane.config import ControllerConfig, LeaseConfig, SofaLeaseConfig, SofaRenewal
from controlplane.core.values.identifiers import Term
from controlplane.testing import MemoryLeaseServer, MemoryLeaseStore, MemoryLockServer, MemoryLockStore
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


def test_what_the_log_says_is_shown_without_the_lease_store(
    cluster_command: RunCommand, lease_server: MemoryLeaseServer
) -> None:
    """Who led last is what an operator asks first when Redis is away."""
    lease_server.available = False
    answers = [
        cluster_command("--connect-timeout", "0", "leader", "show", "--format", output_format)
        for output_format in ("text", "json")
    ]
    for ran in answers:
        assert ran.status == ExitStatus.UNREACHABLE
        assert "Redis at memory did not answer" in ran.err
    shown = json.loads(answers[-1].out)
    assert (shown["lease_profile"], shown["lease_owner"], shown["contenders"]) == ("unknown", None, [])
    assert (shown["opened_by"], shown["opened_term"]) == ("c1", 1)


@pytest.mark.parametrize(
    ("owner", "term", "said"),
    [
        ("c1", 1, ""),
        ("c1", 2, "c1 is taking over, or cannot; if this lasts, its log lines say why"),
        ("c3", 2, "c3 holds the lease, and c1 opened the last term of the log, 1: c3 is taking over, or cannot"),
        ("c3", 1, "c3 holds the lease, and c1 opened the last term of the log, 1: under term 1 c3 can commit nothing"),
    ],
)
def test_lease_and_log_that_name_different_leaders_are_explained(
    cluster_command: RunCommand, lease_server: MemoryLeaseServer, owner: str, term: int, said: str
) -> None:
    """Two names in one line are a riddle otherwise."""
    MemoryLeaseStore(lease_server).acquire(owner, Term(term - 1), 2_000)
    ran = cluster_command("leader", "show")
    assert (ran.status, said in ran.err, bool(ran.err)) == (ExitStatus.DONE, True, bool(said))


def test_a_lease_below_the_logs_term_is_explained(
    cluster_command: RunCommand, world: PublishedWorld, lease_server: MemoryLeaseServer
) -> None:
    """As after an outage of the lease store that lost its memory."""
    world.open_term(Term(5), controller_id="c3")
    MemoryLeaseStore(lease_server).acquire("c1", Term(3), 2_000)
    said = "c1 holds the lease, and c3 opened the last term of the log, 5: under term 4 c1 can commit nothing"
    assert said in cluster_command("leader", "show").err


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
    done = cluster_command("leader", "force-refresh", "c2", "--duration-ms", "1000")
    assert (done.status, "was refreshed: 'c2' owns it for another 1,000 ms" in done.out) == (ExitStatus.DONE, True)
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
        (["--lease-profile", "sofa", "--lease-duration-ms", "5000"], "write --lease-setting duration_ms=MS"),
        (["--lease-profile", "sofa", "--handover-after-ms", "9000"], "--handover-after-ms is not known to --lease-p"),
        (["--lease-profile", "sofa", "--stop-when-lease-store-is-lost"], "--stop-when-lease-store-is-lost is not kn"),
        (["--handover-after-ms", "100"], "at least a lease"),
        (["--lease-duration-ms", "1399"], "use a duration of 1,400 ms or more"),
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


def test_the_leader_is_not_asked_to_resign_where_nobody_can_be_elected(
    cluster_command: RunCommand, world: PublishedWorld, lease_server: MemoryLeaseServer
) -> None:
    """Without the lease store nobody would lead until it is back: whoever wants that all the same says so."""
    resign = ("--connect-timeout", "0", "leader", "resign")
    lease_server.available = False
    silent = cluster_command(*resign)
    lease_server.refusal, lease_server.available = "Redis refuses the credentials", True
    refused = cluster_command(*resign)
    dry = cluster_command(*resign, "--dry-run")
    assert (silent.status, refused.status, dry.status) == (
        ExitStatus.UNREACHABLE,
        ExitStatus.CALLED_WRONGLY,
        ExitStatus.DONE,
    )
    for ran in (silent, refused):
        assert "he leader was not asked to resign" in ran.err
        assert "--force asks all the same" in ran.err
    with answering_leader(world):
        forced = cluster_command(*resign, "--force")
    assert forced.status == ExitStatus.DONE


def test_who_knows_no_address_of_the_lease_store_asks_the_leader_all_the_same(
    cluster_command: RunCommand, command: RunCommand, world: PublishedWorld, lease_server: MemoryLeaseServer
) -> None:
    """Operators need not be allowed to reach it; and what runs in the data folder may be another cluster's."""
    lease_server.available = False
    Path(".controlplane").mkdir()
    Path(".controlplane/addresses.json").write_text('{"bootstrap_servers": "k:7", "redis_url": "redis://r:8/0"}')
    with answering_leader(world):
        elsewhere = command("--bootstrap-servers", "memory:1", "leader", "resign")
    assert elsewhere.status == ExitStatus.DONE
    here = command("--connect-timeout", "0", "leader", "resign")
    assert (here.status, "Redis at r:8 did not answer" in here.err) == (ExitStatus.UNREACHABLE, True)


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
        (4, "c3", "not ended"),
    ]
    assert sum(row["decisions"] for row in rows) == len(world.decisions)
    assert [row["first_seq"] for row in rows[1:]] == [row["first_seq"] + row["decisions"] for row in rows[:-1]]
    times = [(row["first_to_last_decision_ms"], row["last_decision_to_next_term_ms"]) for row in rows]
    assert times[1][1] >= 2_000
    assert times[3] == (0, None)
    assert len(json.loads(cluster_command("leader", "history", "--last", "2", "--format", "json").out)) == 2


def test_leader_is_lease_and_last_term(
    cluster_command: RunCommand, world: PublishedWorld, lease_server: MemoryLeaseServer
) -> None:
    """The lease says who may lead, the log who did last; both are shown, because they can differ."""
    MemoryLeaseStore(lease_server).acquire("c2", Term(6), 2_000)
    world.admit("n1")
    ran = cluster_command("leader", "show", "--format", "json")
    shown = json.loads(ran.out)
    assert ran.status == ExitStatus.DONE
    assert (shown["lease_owner"], shown["lease_term"], shown["lease_remaining_ms"] > 0) == ("c2", 7, True)
    assert (shown["opened_by"], shown["opened_term"], shown["code_version"]) == ("c1", 1, "test")


def test_nobody_leading_has_status_three(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """A script can wait for a leader; a person reads what to do, because the row holds only dashes."""
    ran = cluster_command("leader", "show")
    assert ran.status == ExitStatus.UNREACHABLE
    assert "no controller leads cluster 'local' now: start a controller" in ran.err
