"""One JSON object per line over TCP, one answer for each request, many requests on a connection."""

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Message: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[str, int]
"""Host and port."""

MAX_LINE_BYTES: Final = 64 << 20
_CONNECT_TIMEOUT_S: Final = 0.5


class Unreachable(Exception):  # noqa: N818 - an outcome that every caller has to reckon with
    """The other side did not answer. It is unknown whether it carried out the request."""


class Connections:
    """Sends requests over connections that are kept and used again; thread-safe."""

    def __init__(self) -> None:
        self._idle: dict[Place, list[socket.socket]] = {}
        self._lock = threading.Lock()

    def ask(self, place: Place, request: Message, timeout_s: float) -> Message:
        """Send a request and wait for its answer.

        Every request of this service can be repeated, so one that fails on a kept connection is sent on a new one.

        Raises:
            Unreachable: no answer in time.
        """
        with self._lock:
            idle = self._idle.get(place)
            kept = idle.pop() if idle else None
        if kept is not None:
            try:
                return self._ask_on(kept, place, request, timeout_s)
            except TimeoutError as error:
                raise Unreachable(f"{place[0]}:{place[1]} gave no answer within {timeout_s} s") from error
            except OSError:
                self._forget(place)
        try:
            connection = socket.create_connection(place, min(_CONNECT_TIMEOUT_S, timeout_s))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._ask_on(connection, place, request, timeout_s)
        except OSError as error:
            raise Unreachable(f"{place[0]}:{place[1]} cannot be reached: {error}") from error

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            places = list(self._idle)
        for place in places:
            self._forget(place)

    def _ask_on(self, connection: socket.socket, place: Place, request: Message, timeout_s: float) -> Message:
        try:
            connection.settimeout(timeout_s)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as lines:
                line = lines.readline(MAX_LINE_BYTES)
        except BaseException:
            connection.close()
            raise
        if not line.endswith(b"\n"):
            connection.close()
            raise ConnectionResetError("the connection was closed")
        answer: Message = json.loads(line)
        with self._lock:
            self._idle.setdefault(place, []).append(connection)
        return answer

    def _forget(self, place: Place) -> None:
        with self._lock:
            connections = self._idle.pop(place, [])
        for connection in connections:
            connection.close()


class Server(socketserver.ThreadingTCPServer):
    """Answers each line with ``answer``, in a thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, place: Place, answer: Callable[[Message], Message]) -> None:
        self.answer = answer
        super().__init__(place, _Handler)
        threading.Thread(target=self.serve_forever, args=(0.1,), name="server", daemon=True).start()

    def close(self) -> None:
        """End serving, then listening: a thread that serves a closed socket would never rest."""
        self.shutdown()
        self.server_close()

    @property
    def place(self) -> Place:
        """Where it listens."""
        host, port = self.server_address[:2]
        return str(host), int(port)


class _Handler(socketserver.StreamRequestHandler):
    """One connection."""

    server: Server
    disable_nagle_algorithm = True

    def handle(self) -> None:
        """Answer until the other side closes."""
        with contextlib.suppress(ConnectionError):
            while line := self.rfile.readline(MAX_LINE_BYTES):
                try:
                    answer = self.server.answer(json.loads(line))
                except (ValueError, KeyError, TypeError) as error:
                    answer = {"status": "error", "message": f"not a request: {error!r}"}
                self.wfile.write(json.dumps(answer).encode() + b"\n")
