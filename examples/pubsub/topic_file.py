"""The messages of one topic in a file that all brokers share, and how a stale owner is noticed.

A file has a line of JSON for each record, and records are only ever appended. Nothing keeps two brokers from appending
to the same file: a broker that was suspended, for example, may wake and go on with a request when its bundle has a new
owner. So readers decide which records count, and every reader decides alike:

- A record counts only if its fencing token is not less than that of any record before it. A new owner first writes a
  record with its own token. What a former owner appends afterwards does not count.
- A message counts only if its sequence number is greater than that of any message of its producer before it. What a
  client sent again because it had no answer is there twice, but counts once.

The offset of a message is the number of messages before it that count. A writer appends, reads what it has appended,
and thereby learns whether it counts. Only then it acknowledges.
"""

import errno
import json
import os
import re
import threading
import zlib
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from controlplane.node import Bundle

_TOPIC: Final = re.compile(r"persistent://(?P<namespace>[^/]+/[^/]+)/[^/]+")
_CHUNK_BYTES: Final = 1 << 20

Token: TypeAlias = tuple[int, int]
"""The fencing token of a bundle's owner, as ``FencingToken`` of the agent: a term and an epoch."""


class Refused(Exception):  # noqa: N818 - an outcome that every caller has to reckon with
    """The file takes nothing under this token, or was closed here: another broker owns the topic, or is about to."""


class TopicMessage(NamedTuple):
    """A message of a topic. ``sequence`` is the number that its producer gave to it, and grows by each message."""

    producer: str
    sequence: int
    key: str
    text: str


def namespace_of(topic: str) -> str:
    """The namespace of a topic.

    Raises:
        ValueError: it is no full name of a topic, like ``persistent://tenant/namespace/topic``.
    """
    found = _TOPIC.fullmatch(topic)
    if found is None:
        raise ValueError(f"topic {topic!r}: write a full name, as in persistent://tenant/namespace/topic")
    return found["namespace"]


def is_in(bundle: Bundle, topic: str) -> bool:
    """Whether a topic is in a bundle: by its namespace, and by the CRC-32 of its full name."""
    return namespace_of(topic) == bundle.namespace and bundle.lower <= zlib.crc32(topic.encode()) < bundle.end


class TopicFile:
    """The file of one topic, open for writing and reading. Thread-safe.

    Args:
        path: of the file. It is created if there is none.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file: int | None = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o644)
        self._read_bytes = 0
        self._is_torn = False
        self._greatest_token: Token = (0, 0)
        self._places: list[tuple[int, int]] = []
        self._last: dict[str, tuple[int, int]] = {}
        self._read_on(self._file)

    def take_over(self, token: Token) -> None:
        """Write a record without a message, so that no record under a lesser token counts from here on.

        Raises:
            Refused: the file has records under a greater token, or is closed.
        """
        with self._lock:
            # A process that died may have left a part of a line behind.
            self._append(self._open_file(), b"\n" + _line(token, None))
            self._check(token)

    def append(self, token: Token, message: TopicMessage) -> int:
        """Write a message, unless it is there already. Once this returns, it is on disk, and counts for every reader.

        Returns:
            The offset of the message.

        Raises:
            Refused: the file has records under a greater token, or is closed. The message may be there nevertheless.
            ValueError: the producer has sent later messages already.
        """
        with self._lock:
            file = self._open_file()
            self._check(token)
            if message.sequence > self._last.get(message.producer, (0, 0))[0]:
                self._append(file, _line(token, message))
                self._check(token)
            sequence, offset = self._last[message.producer]
            if sequence != message.sequence:
                raise ValueError(f"producer {message.producer!r} sends {message.sequence} after {sequence}")
            return offset

    def read(self, offset: int, count: int) -> list[TopicMessage]:
        """The messages from an offset on, ``count`` at most.

        Raises:
            Refused: the file is closed.
        """
        with self._lock:
            file = self._open_file()
            lines = [os.pread(file, length, begin) for begin, length in self._places[offset : offset + count]]
        return [TopicMessage(*json.loads(line)["message"]) for line in lines]

    def close(self) -> None:
        """Close the file, when the running call has ended. Later calls are refused."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def _open_file(self) -> int:
        if self._file is None:
            raise Refused("the topic was closed")
        return self._file

    def _check(self, token: Token) -> None:
        if token < self._greatest_token:
            raise Refused(f"the topic was taken over under {self._greatest_token}")

    def _append(self, file: int, record: bytes) -> None:
        """Write a whole record. After a part of one, which a full disk leaves behind, the next begins a new line.

        Raises:
            OSError: it is not on disk, or not whole.
        """
        record = b"\n" + record if self._is_torn else record
        self._is_torn = True
        if (written := os.write(file, record)) < len(record):
            raise OSError(errno.ENOSPC, f"{written} of {len(record)} bytes were written")
        os.fsync(file)
        self._is_torn = False
        self._read_on(file)

    def _read_on(self, file: int) -> None:
        """Take what was appended to the file since the last time, by this broker or by others."""
        rest = b""
        while chunk := os.pread(file, _CHUNK_BYTES, self._read_bytes + len(rest)):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._take(line, self._read_bytes)
                self._read_bytes += len(line) + 1

    def _take(self, line: bytes, begin: int) -> None:
        """Take one line, if it counts."""
        try:
            record = json.loads(line)
        except ValueError:
            return  # empty, or a part of a line
        token = tuple(record["token"])
        if token < self._greatest_token:
            return
        self._greatest_token = token
        if record["message"] is None:
            return
        message = TopicMessage(*record["message"])
        if message.sequence > self._last.get(message.producer, (0, 0))[0]:
            self._last[message.producer] = message.sequence, len(self._places)
            self._places.append((begin, len(line)))


def _line(token: Token, message: TopicMessage | None) -> bytes:
    return json.dumps({"token": token, "message": message}).encode() + b"\n"
