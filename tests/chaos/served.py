"""What processes would serve, and when: how nodes under chaos write it down, and how that is read.

All times are of the machine's monotonic clock, which its processes share, in microseconds. A look at everything that is
watched takes a while, and a process may stand still meanwhile. So a look has two times, and what was seen held at some
moment between them.

A file has a line of JSON for each look: its two times, and the token of each thing that changed, null for a thing that
would not be served. A line for a call has the thing, its token, and two times at which the call was certainly in
progress. Of a process that is killed the last line may be torn.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from io import RawIOBase
from pathlib import Path
from typing import Final, NamedTuple

from controlplane.core.values.identifiers import Epoch, Term
from controlplane.node import FencingToken

CLOSE_US: Final = 100_000
"""Two looks are close together if no more time lies between them. Of what a process serves between looks that are
further apart nothing is known: it may have stood still."""
SUFFIX: Final = ".served"


class Process(NamedTuple):
    """A process of a node."""

    node_id: str
    pid: int

    def __str__(self) -> str:
        """Short, for sentences."""
        return f"{self.node_id} (process {self.pid})"


class Serving(NamedTuple):
    """A process would serve a thing under one token, certainly throughout a time.

    Attributes:
        thing: a slot, or a key of a namespace.
        process: the process.
        token: its fencing token.
        began_us: the first moment.
        ended_us: the last moment. It is before the first one if all that is known is some moment between the two.
    """

    thing: str
    process: Process
    token: FencingToken
    began_us: int
    ended_us: int


class Coverage(NamedTuple):
    """How closely a process was watched.

    Attributes:
        looks: how many there were.
        far_apart: how many of them were not close to the one before.
    """

    looks: int
    far_apart: int


class ServedWriter:
    """Writes the file of one process. Every line is there once the call has returned, also if the process is killed."""

    def __init__(self, stream: RawIOBase) -> None:
        """Write to this stream, which is not buffered."""
        self._stream = stream
        self._tokens: dict[str, FencingToken] = {}

    def look(self, before_us: int, after_us: int, tokens: Mapping[str, FencingToken]) -> None:
        """A look between two times has seen that these things, and no others, would be served under these tokens."""
        changes: dict[str, FencingToken | None] = {
            thing: token for thing, token in tokens.items() if self._tokens.get(thing) != token
        }
        changes |= dict.fromkeys(self._tokens.keys() - tokens.keys())
        self._tokens = dict(tokens)
        self._write([before_us, after_us, changes])

    def call(self, thing: str, token: FencingToken, began_us: int, ended_us: int) -> None:
        """A call that was accepted had the right to serve throughout this time."""
        self._write([thing, token, began_us, ended_us])

    def _write(self, line: list[object]) -> None:
        self._stream.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")


def path_of(folder: Path, process: Process) -> Path:
    """Where a process writes."""
    return folder / f"{process.node_id}-{process.pid}{SUFFIX}"


def read_folder(folder: Path) -> Iterator[tuple[list[Serving], Coverage]]:
    """What each process of a folder has written so far."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        node_id, _, pid = path.stem.rpartition("-")
        yield read_lines(Process(node_id, int(pid)), path.read_bytes().splitlines(keepends=True))


def read_lines(process: Process, lines: Iterable[bytes]) -> tuple[list[Serving], Coverage]:
    """What one process would have served, and how closely it was watched."""
    found: list[Serving] = []
    going_on: dict[str, Serving] = {}
    looked_us: int | None = None
    looks = far_apart = 0
    for line in lines:
        if not line.endswith(b"\n"):
            break  # the process was killed while it wrote
        first, *values = json.loads(line)
        if isinstance(first, str):
            token, began_us, ended_us = values
            found.append(Serving(first, process, _token(token), began_us, ended_us))
            continue
        before_us, (after_us, changes) = first, values
        looks += 1
        if looked_us is not None and after_us - looked_us > CLOSE_US:
            far_apart += 1
            found += going_on.values()
            going_on = {
                thing: each._replace(began_us=after_us, ended_us=before_us)
                for thing, each in going_on.items()
                if thing not in changes
            }
        for thing, token in changes.items():
            former = going_on.pop(thing, None)
            found += [former] if former is not None else []
            if token is not None:
                going_on[thing] = Serving(thing, process, _token(token), after_us, before_us)
        for thing, each in going_on.items():
            going_on[thing] = each._replace(ended_us=before_us)
        looked_us = before_us
    return [*found, *going_on.values()], Coverage(looks, far_apart)


def _token(numbers: tuple[int, int]) -> FencingToken:
    term, since_epoch = numbers
    return FencingToken(Term(term), Epoch(since_epoch))
