"""A TCP proxy whose links are slowed, cut and left half-open: ``python -m tests.chaos.proxy`` with orders on its input.

It is a process of its own, because what it forwards must not wait for a test that breaks it. Each line of its standard
input is an order, ``{"link": ..., "listen": ..., "target": ...}`` for a new link or ``{"link": ..., "mode": ...,
"delay_ms": ...}`` for an old one, or ``{"listen": ..., "links": {...}}`` for a port from which each caller goes on over
a link of its own; each is answered by a line once it holds. ``{"link": ...}`` alone is answered by the number of bytes
of answers that the link has carried.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping
from enum import Enum
from types import TracebackType
from typing import Any, Self, TypeAlias

import psutil

_CHUNK_BYTES = 1 << 16
HOST = "127.0.0.1"

Order: TypeAlias = dict[str, Any]


class LinkMode(Enum):
    """What becomes of what is sent over a link."""

    OPEN = "open"
    """It arrives, after the link's delay."""
    CUT = "cut"
    """Connections are closed, and new ones too: the other side is told."""
    HALF_OPEN = "half-open"
    """Connections stay and carry nothing in either direction, without word to either side. They go on afterwards."""
    ANSWERS_LOST = "answers lost"
    """Requests arrive, answers are swallowed; the connections end when the link is open again."""


class Link:
    """One port that stands for another."""

    def __init__(self, target: int) -> None:
        """An open link to a port of this machine."""
        self._target = target
        self._mode = LinkMode.OPEN
        self._delay_s = 0.0
        self._open = asyncio.Event()
        self._open.set()
        self._connections: set[asyncio.StreamWriter] = set()
        self._swallowed: set[asyncio.StreamWriter] = set()
        self.answered_bytes = 0

    async def listen(self, port: int) -> None:
        """Take connections from now on."""
        await asyncio.start_server(self.serve, HOST, port)

    def set(self, mode: LinkMode, delay_ms: int) -> None:
        """Change what becomes of what is sent."""
        self._mode = mode
        self._delay_s = delay_ms / 1_000
        if mode is LinkMode.HALF_OPEN:
            self._open.clear()
        else:
            self._open.set()
        ended = self._connections if mode is LinkMode.CUT else self._swallowed
        for connection in list(ended):
            connection.transport.abort()
        self._swallowed.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry what one connection sends and is sent, until it ends."""
        await self._open.wait()
        if self._mode is LinkMode.CUT:
            writer.transport.abort()
            return
        try:
            target_reader, target_writer = await asyncio.open_connection(HOST, self._target)
        except OSError:
            writer.transport.abort()
            return
        self._connections |= {writer, target_writer}
        try:
            await asyncio.gather(
                self._forward(reader, target_writer, answers=False), self._forward(target_reader, writer, answers=True)
            )
        finally:
            self._connections -= {writer, target_writer}
            self._swallowed.discard(writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._open.wait()
                if answers and self._mode is LinkMode.ANSWERS_LOST:
                    self._swallowed.add(writer)
                    continue
                writer.write(data)
                self.answered_bytes += len(data) if answers else 0
                await writer.drain()
        # One end is gone, so the other has nobody to talk to.
        writer.transport.abort()


class SharedPort:
    """A port at which several processes call, each of which goes on over a link of its own.

    Args:
        links: by what the command line of a caller contains.
    """

    def __init__(self, links: Mapping[str, Link]) -> None:
        """Nothing has called yet."""
        self._links = dict(links)

    async def listen(self, port: int) -> None:
        """Take connections from now on."""
        await asyncio.start_server(self._serve, HOST, port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports: tuple[int, int] = writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1]
        command = await asyncio.get_running_loop().run_in_executor(None, _command_of_caller, *ports)
        link = next((link for part, link in self._links.items() if part in command), None)
        if link is None:
            writer.transport.abort()
        else:
            await link.serve(reader, writer)


def _command_of_caller(its_port: int, our_port: int) -> str:
    """The command line of the process at the other end of a connection; empty if it has gone."""
    for connection in psutil.net_connections("tcp"):
        ends = [address.port for address in (connection.laddr, connection.raddr) if address]
        if ends == [its_port, our_port] and connection.pid:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                return " ".join(psutil.Process(connection.pid).cmdline())
    return ""


class Proxy:
    """The proxy's process, seen from outside. A context manager: it ends with the block."""

    def __init__(self) -> None:
        """It begins with the block."""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.proxy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def link(self, name: str, listen: int, target: int) -> None:
        """A new link: a connection to the port ``listen`` reaches ``target``."""
        self._order({"link": name, "listen": listen, "target": target})

    def share(self, listen: int, links: Mapping[str, str]) -> None:
        """Open a port from which callers go on over links of their own.

        Args:
            listen: the port.
            links: names of links by what the command line of a caller contains.
        """
        self._order({"listen": listen, "links": dict(links)})

    def set(self, name: str, mode: LinkMode, delay_ms: int = 0) -> None:
        """Change a link."""
        self._order({"link": name, "mode": mode.value, "delay_ms": delay_ms})

    def answered_bytes(self, name: str) -> int:
        """How many bytes of answers a link has carried so far."""
        return int(self._ask({"link": name}))

    def _order(self, order: Order) -> None:
        answer = self._ask(order)
        assert answer == "done\n", f"the proxy did not carry out {order}: {answer!r}"

    def _ask(self, order: Order) -> str:
        process = self._process
        assert process is not None, "the proxy runs only within its block"
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return process.stdout.readline()


async def serve() -> None:
    """Carry out orders until there are no more."""
    links: dict[str, Link] = {}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order: Order = json.loads(line)
        if "target" in order:
            link = links[order["link"]] = Link(order["target"])
            await link.listen(order["listen"])
        elif "links" in order:
            await SharedPort({part: links[name] for part, name in order["links"].items()}).listen(order["listen"])
        elif "mode" in order:
            links[order["link"]].set(LinkMode(order["mode"]), order["delay_ms"])
        else:
            sys.stdout.write(f"{links[order['link']].answered_bytes}\n")
            sys.stdout.flush()
            continue
        sys.stdout.write("done\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
