"""Checkpoints that are read while their stream writes them, without Spark."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane.errors import PrerequisiteError
from streaming.continuity.checkpoints import (
    make_checkpoint,
    move_aside,
    move_behind,
    read_checkpoint,
    store_topic_id,
    stored_topic_id,
)
from streaming.storage import storage_path
from tests.helpers.s3_server import s3_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The checkpoint of a stream behind its batch 0, which ends at offset 5."""
    make_checkpoint(tmp_path / "stream", "topic", {0: 5})
    return tmp_path / "stream"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What the stream does while the reader waits, the first time first; then nothing."""
    coming: list[Callable[[], object]] = []
    monkeypatch.setattr("streaming.continuity.checkpoints.time.sleep", lambda _: coming.pop(0)() if coming else None)
    return coming


def plan(folder: Path, batch: int, end: int) -> None:
    """Write where a batch ends."""
    head, state, _ = (folder / "offsets" / "0").read_text(encoding="utf-8").splitlines()
    told = "\n".join((head, state, json.dumps({"topic": {"0": end}})))
    (folder / "offsets" / str(batch)).write_text(told, encoding="utf-8")


def test_a_stream_may_go_on_while_its_checkpoint_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By more than one batch between a look at what is done and one at what is planned."""
    listed, commits = Path.iterdir, folder / "commits"

    def listed_and_on(inner: Path) -> Iterator[Path]:
        found = list(listed(inner))
        if inner == commits and not (commits / "1").exists():
            plan(folder, 1, 7)
            (commits / "1").write_bytes((commits / "0").read_bytes())
            plan(folder, 2, 9)
        return iter(found)

    monkeypatch.setattr(Path, "iterdir", listed_and_on)
    checkpoint = read_checkpoint(folder, "topic")
    assert checkpoint is not None
    assert (checkpoint.batch, checkpoint.begin, checkpoint.end, checkpoint.is_committed) == (2, {0: 7}, {0: 9}, False)


def test_only_what_is_found_twice_is_damage(folder: Path, pauses: list[Callable[[], object]]) -> None:
    """A file whose sum comes later is no damage, nor one after the other of different ones."""
    offsets, total = folder / "offsets" / "0", folder / "offsets" / ".0.crc"
    whole, told = offsets.read_bytes(), total.read_bytes()
    offsets.write_bytes(whole + b" ")
    pauses += [lambda: offsets.write_bytes(b""), lambda: offsets.write_bytes(whole)]
    checkpoint = read_checkpoint(folder, "topic")
    assert checkpoint is not None
    assert (checkpoint.end, pauses) == ({0: 5}, [])
    total.write_bytes(told[:-1] + b"x")
    pauses += [lambda: None, lambda: total.write_bytes(told)]
    with pytest.raises(PrerequisiteError, match="offsets/0 does not have the sum"):
        read_checkpoint(folder, "topic")
    assert len(pauses) == 1


@pytest.mark.parametrize("damaged", [b"", b"first\n", b"fi"])
def test_a_damaged_id_of_a_topic_is_none(folder: Path, damaged: bytes) -> None:
    """It is told from another id by its sum, and noted anew by the next start."""
    assert stored_topic_id(folder) is None
    store_topic_id(folder, "first")
    assert stored_topic_id(folder) == "first"
    (folder / "topic_id").write_bytes(damaged)
    checkpoint = read_checkpoint(folder, "topic")
    assert checkpoint is not None
    assert checkpoint.topic_id is None
    store_topic_id(folder, "second")
    assert stored_topic_id(folder) == "second"


@pytest.mark.slow
def test_a_checkpoint_in_an_object_store_is_read_moved_and_made_as_on_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only that nothing is renamed there."""
    with s3_server(tmp_path, "tables") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        folder = storage_path("s3a://tables/eu/_checkpoints/stream")
        assert (read_checkpoint(folder, "topic"), stored_topic_id(folder), move_aside(folder)) == (None, None, None)
        store_topic_id(folder, "first")
        assert (read_checkpoint(folder, "topic"), stored_topic_id(folder)) == (None, "first")
        query_id = make_checkpoint(folder, "topic", {0: 5, 1: 7}, "second")
        made = read_checkpoint(folder, "topic")
        assert made is not None
        assert (made.query_id, made.end, made.topic_id) == (query_id, {0: 5, 1: 7}, "second")
        move_behind(made, "topic", {1: 9, 2: 3})
        moved = read_checkpoint(folder, "topic")
        assert moved is not None
        assert (moved.query_id, moved.begin, moved.topic_id) == (query_id, {0: 5, 1: 9, 2: 3}, "second")
        with pytest.raises(PrerequisiteError, match="where nothing can be renamed"):
            move_aside(folder)
