"""The checkpoint of a stream, as Spark keeps it: read, moved behind records that are lost, and made anew.

Beside Spark's files stands Kafka's id of the topic, which offsets do not tell from one that was made again.

Spark writes ``offsets/N``, where batch N ends, before it runs the batch, and ``commits/N`` after it. The next start
repeats a batch that is planned and not committed, from where the one before ends; the first one begins where
``sources/0/0`` says. Each file has a sum beside it, which Spark compares. Only version 1 of the format is known.
"""

import json
import os
import struct
import time
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controlplane.errors import PrerequisiteError, RetryableError
from streaming.error_texts import HOW_TO_MEND
from streaming.storage import ObjectPath, StoragePath

Offsets = Mapping[int, int]
"""The next offset of each partition."""

_VERSION: Final = "v1"
_METADATA: Final = Path("metadata")
_TOPIC_ID: Final = Path("topic_id")
_FORMER: Final = ".former-"
"""Stands in the name of a checkpoint that was moved aside, before the time."""
_FIRST_BATCH: Final = Path("sources", "0", "0")
_LEADING_ZERO: Final = b"\x00"
"""Spark begins the file of the first batch's offsets with it."""
_SUMMED_BYTES: Final = 512
_SUM_HEAD: Final = b"crc\x00" + struct.pack(">i", _SUMMED_BYTES)
_SETTLES_S: Final = 0.2
"""How long it takes at the most, as a rule, until what a stream changes in its checkpoint fits together again."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a stream is.

    Attributes:
        folder: where it is.
        query_id: the id under which the stream's batches are written to tables.
        batch: the number of the newest planned batch; None: there is none yet.
        begin: where the next batch begins: behind the last one that is committed, or, before the first one, where the
            stream was to begin. Empty: that is not determined yet, and it begins where the topic does.
        end: where the newest planned batch ends.
        is_committed: whether that batch is done; then it ends at ``begin``.
        planned_at_ms: when it was planned, in milliseconds since 1970; None: there is none yet.
        topic_id: Kafka's id of the topic that was read; None: it is not known.
    """

    folder: StoragePath
    query_id: str
    batch: int | None
    begin: Offsets
    end: Offsets
    is_committed: bool
    planned_at_ms: int | None
    topic_id: str | None


def read_checkpoint(folder: StoragePath, topic: str) -> Checkpoint | None:
    """The checkpoint of a stream, which may run meanwhile; None if it never ran.

    A running stream adds, replaces and removes files while they are read, and their sums apart from them. So what does
    not fit together is read again after a moment, until it is whole or the same is found twice.

    Args:
        folder: the checkpoint's.
        topic: the whole name in Kafka of the topic that the stream reads.

    Raises:
        PrerequisiteError: a file is damaged or missing, or another topic was read.
        RetryableError: the storage does not answer.
    """
    found = ""
    while True:
        try:
            return _read_once(folder, topic)
        except PrerequisiteError as error:
            if str(error) == found:
                raise
            found = str(error)
        time.sleep(_SETTLES_S)


def _read_once(folder: StoragePath, topic: str) -> Checkpoint | None:
    if not (folder / "metadata").exists():
        return None
    query_id = str(_field(folder, _METADATA, _parsed(folder, _METADATA, _text(folder, _METADATA)), "id"))
    topic_id = stored_topic_id(folder)
    committed, planned = _newest(folder / "commits"), _newest(folder / "offsets")  # a running stream plans first
    if planned is None and committed is None:
        begin = _offsets(folder, _FIRST_BATCH, topic) if (folder / _FIRST_BATCH).exists() else {}
        return Checkpoint(
            folder, query_id, None, begin, begin, is_committed=True, planned_at_ms=None, topic_id=topic_id
        )
    if planned is None or (committed is None and planned > 0):
        raise _damaged(folder, f"{'offsets' if planned is None else 'commits'} is empty")
    is_committed = committed == planned
    if not is_committed and committed is not None and committed != planned - 1:
        raise _damaged(folder, f"offsets ends with {planned} and commits with {committed}")
    if committed is not None:
        _lines(folder, Path("commits", str(committed)))
    place = Path("offsets", str(planned))
    end, head = _offsets(folder, place, topic), _parsed(folder, place, _lines(folder, place)[1])
    begin = end
    if not is_committed:
        begin = _offsets(folder, _before(planned), topic)
    planned_at_ms = int(_field(folder, place, head, "batchTimestampMs"))
    return Checkpoint(folder, query_id, planned, begin, end, is_committed, planned_at_ms, topic_id)


def stored_query_id(folder: StoragePath) -> str | None:
    """The id under which the stream's batches are written; None if the checkpoint does not tell it any more.

    If the checkpoint was moved aside by :func:`move_aside`, and none was made since, it is that one's.
    """
    place = _present(folder)
    try:
        return str(_field(place, _METADATA, _parsed(place, _METADATA, _text(place, _METADATA)), "id"))
    except PrerequisiteError:
        return None


def stored_topic_id(folder: StoragePath) -> str | None:
    """Kafka's id of the topic that the stream reads; None if the checkpoint does not tell it, or not any more.

    If the checkpoint was moved aside by :func:`move_aside`, and none was made since, it is that one's.

    Raises:
        RetryableError: the storage does not answer.
    """
    try:
        return _text(_present(folder), _TOPIC_ID).strip()
    except PrerequisiteError:
        return None


def store_topic_id(folder: StoragePath, topic_id: str) -> None:
    """Keep Kafka's id of the topic that the stream reads from now on; also before Spark makes the checkpoint.

    Raises:
        OSError: the storage fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / _TOPIC_ID, topic_id.encode())


def move_behind(checkpoint: Checkpoint, topic: str, firsts: Offsets) -> None:
    """Let the next batch begin at these offsets, or behind them where it does already: where it begins is determined.

    The end of a planned batch is moved before its beginning. After a crash between the two it is found unmoved.

    Args:
        checkpoint: as it was read; the stream does not run.
        topic: the topic's whole name in Kafka.
        firsts: the first offset of each partition that is to be moved.
    """
    batch = checkpoint.batch
    place = _FIRST_BATCH if batch is None else Path("offsets", str(batch))
    _replace_offsets(checkpoint.folder, place, topic, _behind(checkpoint.end, firsts))
    if batch is not None and not checkpoint.is_committed:
        _replace_offsets(checkpoint.folder, _before(batch), topic, _behind(checkpoint.begin, firsts))


def move_aside(folder: StoragePath) -> Path | None:
    """Move a checkpoint aside, so that no stream starts with it.

    Returns:
        Where it is now; None if there was none.

    Raises:
        PrerequisiteError: it is in an object store.
    """
    if not folder.exists():
        return None
    if isinstance(folder, ObjectPath):
        message = f"the checkpoint {folder} is in an object store, where nothing can be renamed: copy it elsewhere "
        raise PrerequisiteError(f"{message}by the store's own tools, delete it, and try again")
    return folder.rename(folder.with_name(f"{folder.name}{_FORMER}{_now_ms()}"))


def make_checkpoint(folder: StoragePath, topic: str, begin: Offsets, topic_id: str | None = None) -> str:
    """Make a checkpoint with which a stream begins at these offsets, behind a batch 0 that is done.

    Args:
        folder: the checkpoint's; there is none yet.
        topic: the topic's whole name in Kafka.
        begin: the first offset of each partition.
        topic_id: Kafka's id of the topic; None: the next start determines it.

    Returns:
        Its new id, under which no table knows any batch.
    """
    query_id = str(uuid.uuid4())
    if isinstance(folder, ObjectPath):
        _fill(folder, topic, begin, query_id, topic_id)
        return query_id
    made = folder.with_name(f"{folder.name}.new-{_now_ms()}")
    _fill(made, topic, begin, query_id, topic_id)
    made.rename(folder)
    return query_id


def _present(folder: StoragePath) -> StoragePath:
    """Where the checkpoint is, which may have been moved aside."""
    if isinstance(folder, ObjectPath) or folder.exists():
        return folder
    return max(_former(folder), default=folder)


def _former(folder: Path) -> list[Path]:
    """The checkpoints that were moved aside, the newest one last."""
    return sorted(folder.parent.glob(f"{folder.name}{_FORMER}*"))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _fill(folder: StoragePath, topic: str, begin: Offsets, query_id: str, topic_id: str | None) -> None:
    for inner in ("offsets", "commits"):
        (folder / inner).mkdir(parents=True)
    if topic_id is not None:
        store_topic_id(folder, topic_id)
    head = {"batchWatermarkMs": 0, "batchTimestampMs": _now_ms(), "conf": {}}
    _write(folder / "metadata", json.dumps({"id": query_id}).encode())
    _write(folder / "offsets" / "0", "\n".join((_VERSION, json.dumps(head), _offsets_line(topic, begin))).encode())
    _write(folder / "commits" / "0", f'{_VERSION}\n{{"nextBatchWatermarkMs":0}}'.encode())


def _before(batch: int) -> Path:
    """The file that says where a batch begins."""
    return Path("offsets", str(batch - 1)) if batch else _FIRST_BATCH


def _behind(offsets: Offsets, firsts: Offsets) -> dict[int, int]:
    return {**offsets, **{partition: max(first, offsets.get(partition, 0)) for partition, first in firsts.items()}}


def _newest(folder: StoragePath) -> int | None:
    if not folder.is_dir():
        return None
    return max((int(each.name) for each in folder.iterdir() if each.name.isdigit()), default=None)


def _offsets(folder: StoragePath, place: Path, topic: str) -> Offsets:
    by_topic = _parsed(folder, place, _lines(folder, place)[-1])
    if set(by_topic) != {topic}:
        raise _damaged(folder, f"{place} is of {', '.join(map(str, by_topic)) or 'no topic'}, not of {topic}")
    try:
        return {int(partition): int(offset) for partition, offset in by_topic[topic].items()}
    except (AttributeError, TypeError, ValueError):
        raise _damaged(folder, f"{place} has no offsets of partitions") from None


def _lines(folder: StoragePath, place: Path) -> list[str]:
    lines = _text(folder, place).removeprefix("\x00").splitlines()
    least = 3 if place.parts[0] == "offsets" else 2
    if not lines or lines[0] != _VERSION or len(lines) < least:
        raise _damaged(folder, f"{place} is cut off or of another version: it begins with {lines[:1]!s:.80}")
    return lines


def _text(folder: StoragePath, place: Path) -> str:
    path = folder / place
    try:
        content, kept_sum = path.read_bytes(), _kept_sum(path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise _damaged(folder, f"{place} cannot be read: {error.strerror or error}") from error
    except OSError as error:
        raise RetryableError(f"the checkpoint {folder} cannot be read now: {error}") from error
    if not content:
        raise _damaged(folder, f"{place} is empty")
    if kept_sum and kept_sum != _sum_of(content):  # a crash may leave an empty one
        raise _damaged(folder, f"{place} does not have the sum that is kept beside it")
    return content.decode(errors="replace")


def _parsed(folder: StoragePath, place: Path, text: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise _damaged(folder, f"{place} is no JSON where it has to be: {text[:60]!r}")
    return parsed


def _field(folder: StoragePath, place: Path, parsed: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - of JSON
    if name not in parsed:
        raise _damaged(folder, f"{place} has no {name}")
    return parsed[name]


def _damaged(folder: StoragePath, what: str) -> PrerequisiteError:
    return PrerequisiteError(f"the checkpoint {folder} is damaged: {what}; {HOW_TO_MEND}")


def _offsets_line(topic: str, offsets: Offsets) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in sorted(offsets.items())}})


def _replace_offsets(folder: StoragePath, place: Path, topic: str, offsets: Offsets) -> None:
    lines = [*_text(folder, place).removeprefix("\x00").splitlines()[:-1], _offsets_line(topic, offsets)]
    leading = _LEADING_ZERO if place == _FIRST_BATCH else b""
    _write(folder / place, leading + "\n".join(lines).encode())


def _write(path: StoragePath, content: bytes) -> None:
    """Write a file and its sum, so that a crash leaves the former file or the new one, without a sum at the worst.

    An object is written whole or not at all, and Hadoop keeps no sum of it.
    """
    if isinstance(path, ObjectPath):
        path.write_bytes(content)
        return
    made = path.with_name(f".{path.name}.made")
    made.write_bytes(content)
    with made.open("rb+") as file:
        os.fsync(file.fileno())
    _sum_file(path).unlink(missing_ok=True)
    made.replace(path)
    _sum_file(path).write_bytes(_sum_of(content))


def _kept_sum(path: StoragePath) -> bytes | None:
    if isinstance(path, ObjectPath) or not _sum_file(path).exists():
        return None
    return _sum_file(path).read_bytes()


def _sum_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _sum_of(content: bytes) -> bytes:
    """A file of sums as Hadoop writes it: one sum for each 512 bytes."""
    parts = (content[start : start + _SUMMED_BYTES] for start in range(0, len(content), _SUMMED_BYTES))
    return _SUM_HEAD + b"".join(struct.pack(">I", zlib.crc32(part)) for part in parts)
