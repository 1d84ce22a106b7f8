"""Commands that ask the leader for something and wait for its answer."""

import json
import time
from collections.abc import Callable

import pytest

from controlplane.cli.common import connecting
from controlplane.cli.common.failures import ExitStatus
from controlplane.codec.inputs import decode_input
from controlplane.config import INTENTS
from controlplane.core.intents.intent import Intent
from controlplane.core.values.identifiers import TopicPartition
from controlplane.errors import LogUnavailableError
from controlplane.ports import Delivery, OutgoingRecord
from controlplane.testing import MemoryEventWriter, MemoryLogReader
from tests.helpers.answering import answering_leader
from tests.helpers.commands import RunCommand
from tests.helpers.published_world import PublishedWorld


def sent_intents(world: PublishedWorld) -> list[Intent]:
    """Every intent in the broker."""
    reader = world.reader()
    reader.assign({TopicPartition(INTENTS, 0): 0})
    payloads = [decode_input(INTENTS, record).payload for record in reader.poll(100, 0).records]
    return [payload for payload in payloads if isinstance(payload, Intent)]


def test_intent_is_sent_without_waiting(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """With ``--wait 0`` the command only appends, with the arguments that the leader expects."""
    ran = cluster_command("namespaces", "create", "kv", "--wait", "0", "--format", "json")
    (intent,) = sent_intents(world)
    shown = json.loads(ran.out)
    assert ran.status == ExitStatus.DONE
    assert (intent.kind, intent.arguments) == ("create_namespace", {"namespace": "kv"})
    assert (shown["outcome"], shown["intent_id"]) == ("sent", intent.intent_id)


def test_nobody_answering_has_status_three(cluster_command: RunCommand, world: PublishedWorld) -> None:
    """Without a leader the intent waits in the log, and the caller is told so."""
    ran = cluster_command("intents", "override-self-preservation", "--wait", "0.3")
    assert ran.status == ExitStatus.UNREACHABLE
    assert "stays in the log" in ran.out


@pytest.mark.parametrize(
    ("words", "status", "outcome"),
    [
        (("namespaces", "create", "kv"), ExitStatus.DONE, "done"),
        (("intents", "override-self-preservation"), ExitStatus.DONE, "done"),
        (("nodes", "drain", "n9", "--even-unknown"), ExitStatus.FAILED, "refused"),
    ],
)
def test_answer_of_the_leader_decides_the_status(
    cluster_command: RunCommand, world: PublishedWorld, words: tuple[str, ...], status: ExitStatus, outcome: str
) -> None:
    """Done and refused are told apart, with the decision that says so."""
    with answering_leader(world):
        ran = cluster_command(*words, "--format", "json")
    shown = json.loads(ran.out)
    assert (ran.status, shown["outcome"]) == (status, outcome)
    assert shown["seq"] == world.state.seq


def test_intent_without_an_acknowledgement_may_have_been_taken(
    cluster_command: RunCommand, world: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out proves nothing: it is said how to find out."""
    assert world.state.log_id

    def send(_writer: object, record: OutgoingRecord, on_delivery: Callable[[Delivery], None]) -> None:
        on_delivery(Delivery(record.topic, -1, -1, -1, "Local: Message timed out"))

    monkeypatch.setattr(MemoryEventWriter, "send", send)
    ran = cluster_command("namespaces", "create", "kv", "--wait", "0.3")
    assert ran.status == ExitStatus.UNREACHABLE
    assert "may have been written nevertheless" in ran.err
    assert "controlplane log show" in ran.err


def test_the_answer_to_an_intent_without_an_acknowledgement_is_shown(
    cluster_command: RunCommand, world: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker died after it had taken the intent, and the leader has carried it out."""
    append = MemoryEventWriter.send

    def send(
        writer: MemoryEventWriter, record: OutgoingRecord, on_delivery: Callable[[Delivery], None] | None = None
    ) -> None:
        append(writer, record)
        if on_delivery is not None:
            on_delivery(Delivery(record.topic, -1, -1, -1, "Local: Message timed out"))

    monkeypatch.setattr(MemoryEventWriter, "send", send)
    with answering_leader(world):
        ran = cluster_command("namespaces", "create", "kv", "--format", "json")
    assert (ran.status, json.loads(ran.out)["outcome"]) == (ExitStatus.DONE, "done")


@pytest.mark.parametrize(
    "words",
    [("namespaces", "create", "kv"), ("nodes", "drain", "n1"), ("leader", "resign", "--force")],
)
def test_an_order_that_did_not_leave_the_command_says_so(
    cluster_command: RunCommand, world: PublishedWorld, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """It can be given again without a look into the log; and the message says where to look."""

    def end_offsets(*_: object, **__: object) -> None:
        raise LogUnavailableError("no usable answer from Kafka about topic local.decisions")

    monkeypatch.setattr(MemoryLogReader, "end_offsets", end_offsets)
    ran = cluster_command(*words)
    assert ran.status == ExitStatus.UNREACHABLE
    assert "Kafka at memory:1: no usable answer from Kafka about topic local.decisions" in ran.err
    assert ran.err.rstrip().endswith("Nothing was sent")
    assert sent_intents(world) == []


def test_what_an_order_waits_for_is_told(
    cluster_command: RunCommand, world: PublishedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the order is sent no leader is waited for."""
    assert world.state.log_id
    monkeypatch.setattr(connecting, "LONGEST_WAIT_S", 0.05)
    end_offsets = MemoryLogReader.end_offsets

    def slow(reader: MemoryLogReader, topic: str, *, only_answering: bool = False) -> dict[TopicPartition, int]:
        time.sleep(0.3)
        return end_offsets(reader, topic, only_answering=only_answering)

    monkeypatch.setattr(MemoryLogReader, "end_offsets", slow)
    ran = cluster_command("intents", "override-self-preservation", "--wait", "0.5")
    told = [line.split(" of cluster")[0] for line in ran.err.splitlines() if " of cluster local ..." in line]
    assert list(dict.fromkeys(told)) == ["looking for the end of the log", "waiting for the leader"]
