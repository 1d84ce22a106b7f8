"""The proxy's links carry, slow, cut and swallow as their modes say."""

import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from controlplane.embedded.server import free_port
from tests.chaos.proxy import HOST, LinkMode, Proxy


class _Echo(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            self.server.heard.append(line)  # type: ignore[attr-defined]
            self.wfile.write(line)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        super().__init__((HOST, 0), _Echo)


@pytest.fixture
def echo() -> Iterator[_Server]:
    """A server that says what it hears."""
    with _Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def link(echo: _Server) -> Iterator[tuple[Proxy, int]]:
    """A proxy with one link to it, and the link's port."""
    port = free_port()
    with Proxy() as proxy:
        proxy.link("echo", port, echo.server_address[1])
        yield proxy, port


def connect(port: int) -> socket.socket:
    """A connection that waits a second at most."""
    return socket.create_connection((HOST, port), 1.0)


def test_an_open_link_carries_both_ways_and_takes_its_time(link: tuple[Proxy, int]) -> None:
    """The delay counts in each direction."""
    proxy, port = link
    with connect(port) as connection:
        connection.sendall(b"one\n")
        assert connection.recv(99) == b"one\n"
        proxy.set("echo", LinkMode.OPEN, delay_ms=100)
        began_s = time.monotonic()
        connection.sendall(b"two\n")
        assert connection.recv(99) == b"two\n"
        assert time.monotonic() - began_s >= 0.2


def test_a_cut_link_ends_what_there_is_and_refuses_more(link: tuple[Proxy, int]) -> None:
    """Both sides are told, as by a host that answers with a reset."""
    proxy, port = link
    with connect(port) as connection:
        connection.sendall(b"one\n")
        assert connection.recv(99) == b"one\n"
        proxy.set("echo", LinkMode.CUT)
        with pytest.raises(ConnectionError):
            _ = connection.recv(99) or _gone()
    with connect(port) as connection, pytest.raises(ConnectionError):
        _ = connection.recv(99) or _gone()
    proxy.set("echo", LinkMode.OPEN)
    with connect(port) as connection:
        connection.sendall(b"three\n")
        assert connection.recv(99) == b"three\n"


def test_a_half_open_link_tells_nobody_and_goes_on_later(link: tuple[Proxy, int], echo: _Server) -> None:
    """The bytes were on their way, as TCP's are that are sent again."""
    proxy, port = link
    with connect(port) as connection:
        connection.sendall(b"one\n")
        assert connection.recv(99) == b"one\n"
        proxy.set("echo", LinkMode.HALF_OPEN)
        connection.sendall(b"two\n")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(99)
        assert echo.heard == [b"one\n"]
        assert proxy.answered_bytes("echo") == len(b"one\n")
        proxy.set("echo", LinkMode.OPEN)
        connection.settimeout(1.0)
        assert connection.recv(99) == b"two\n"


def test_lost_answers_were_carried_out(link: tuple[Proxy, int], echo: _Server) -> None:
    """The connection that lost them cannot go on: what came next would be taken for the answer."""
    proxy, port = link
    with connect(port) as connection:
        connection.sendall(b"one\n")
        assert connection.recv(99) == b"one\n"
        proxy.set("echo", LinkMode.ANSWERS_LOST)
        connection.sendall(b"two\n")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(99)
        assert echo.heard == [b"one\n", b"two\n"]
        proxy.set("echo", LinkMode.OPEN)
        connection.settimeout(1.0)
        with pytest.raises(ConnectionError):
            _ = connection.recv(99) or _gone()


def test_a_caller_of_a_shared_port_goes_on_over_its_own_link(echo: _Server) -> None:
    """What befalls the links of others does not concern it; a caller without a link is sent away."""
    mine, other, shared = free_port(), free_port(), free_port()
    this_process = " ".join(psutil.Process().cmdline())
    with Proxy() as proxy:
        proxy.link("mine", mine, echo.server_address[1])
        proxy.link("other", other, echo.server_address[1])
        proxy.share(shared, {"no such command": "other", this_process: "mine"})
        proxy.set("other", LinkMode.CUT)
        with connect(shared) as connection:
            connection.sendall(b"one\n")
            assert connection.recv(99) == b"one\n"
        assert proxy.answered_bytes("mine") == len("one\n")
        proxy.set("mine", LinkMode.CUT)
        with connect(shared) as connection, pytest.raises(ConnectionError):
            _ = connection.recv(99) or _gone()
        elsewhere = free_port()
        proxy.share(elsewhere, {"no such command": "other"})
        proxy.set("other", LinkMode.OPEN)
        with connect(elsewhere) as connection, pytest.raises(ConnectionError):
            _ = connection.recv(99) or _gone()


def _gone() -> bytes:
    """An end without a reset is an end as well."""
    raise ConnectionResetError
