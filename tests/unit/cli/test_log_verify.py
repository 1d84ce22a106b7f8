"""``log verify``: a log that holds, and each fault of one that does not."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.codec.decisions import decision_key, encode_decision
from controlplane.config import DECISIONS
from controlplane.core.values.identifiers import Seq
from controlplane.errors import LogContinuityError
from controlplane.inspection import readers
from controlplane.inspection.readers import LoggedDecision
from controlplane.ports import OutgoingRecord
from controlplane.testing import MemoryEventWriter
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


def test_log_that_holds_is_verified(cluster_command: RunCommand, played: PublishedWorld) -> None:
    """A sentence with what was checked; status 0 is the answer for scripts."""
    certificates = sum(decision.certificate is not None for decision in played.decisions)
    ran = cluster_command("log", "verify")
    checked = f"{len(played.decisions)} decisions up to epoch {played.state.epoch}, {certificates} certificates"
    assert (ran.status, ran.out) == (ExitStatus.DONE, f"{checked}: every one holds\n")
    shown = json.loads(cluster_command("log", "verify", "--epoch", "2", "--format", "json").out)
    assert shown == {
        "decisions": len(played.decisions),
        "certificates": certificates,
        "epoch": played.state.epoch,
        "complaints": [],
    }
    ahead = cluster_command("log", "verify", "--epoch", "999")
    assert ahead.status == ExitStatus.FAILED
    assert f"epoch 999 is not there yet: the newest one is {played.state.epoch}" in ahead.err


def test_log_that_was_altered_is_named(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision, and what is wrong with it; what stands behind a broken chain is not judged."""
    index = len(played.decisions) - 2
    altered = [LoggedDecision(decision, offset, 0) for offset, decision in enumerate(played.decisions)]
    altered[index] = replace(altered[index], decision=replace(altered[index].decision, decided_at_ms=1))
    monkeypatch.setattr(readers, "read_decisions", lambda _source, **_: iter(altered))
    ran = cluster_command("log", "verify")
    seq = played.decisions[index].seq
    assert ran.status == ExitStatus.FAILED
    assert ran.out.splitlines()[1].split()[0] == str(seq)
    assert f"decision {seq}: state digest" in ran.out
    assert ran.out.splitlines()[-1].endswith(": 1 complaint")
    (complaint,) = json.loads(cluster_command("log", "verify", "--format", "json").out)["complaints"]
    assert (complaint["seq"], complaint["epoch"]) == (seq, altered[index].decision.epoch)
    elsewhere = cluster_command("log", "verify", "--epoch", "1")
    assert elsewhere.status == ExitStatus.DONE
    assert elsewhere.out.endswith("; of epoch 1: every one holds\n")
    behind = cluster_command("log", "verify", "--epoch", str(played.state.epoch + 5))
    assert (behind.status, behind.out.count(f"decision {seq}: state digest")) == (ExitStatus.FAILED, 1)


def test_log_that_ends_within_a_decision_is_no_whole_log(
    cluster_command: RunCommand, played: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was judged until there stays judged, and the end is told like any other fault."""

    def cut_off(_reader: object, **_: object) -> Iterator[LoggedDecision]:
        yield LoggedDecision(played.decisions[0], 0, 0)
        raise LogContinuityError("decisions[0]@7: the log ends within a decision")

    monkeypatch.setattr(readers, "read_decisions", cut_off)
    ran = cluster_command("log", "verify")
    assert ran.status == ExitStatus.FAILED
    assert "the log ends within a decision" in ran.out


def test_last_decision_that_cannot_be_decoded_is_told(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """It breaks no chain, because nothing follows; once the decision of its key came, the record was a foreign one."""
    world.admit("n1")
    following = world.state.seq + 1
    record = encode_decision(replace(world.decisions[-1], seq=Seq(following)))[0]
    events = MemoryEventWriter(world.cluster, world.broker)
    events.send(OutgoingRecord(DECISIONS, b"nonsense", record[:-3], 0))
    assert cluster_command("log", "verify").status == ExitStatus.DONE
    events.send(OutgoingRecord(DECISIONS, decision_key(Seq(following)), record[:-3], 0))
    ran = cluster_command("log", "verify")
    assert ran.status == ExitStatus.FAILED
    assert f"has the key of decision {following} and cannot be decoded (decisions[0]@" in ran.out
    assert ran.out.splitlines()[-1].endswith(": 1 complaint")
    (complaint,) = json.loads(cluster_command("log", "verify", "--format", "json").out)["complaints"]
    assert complaint["seq"] == following
    world.admit("n2")
    assert cluster_command("log", "verify").status == ExitStatus.DONE
