"""A TLS front for a server that has none: it takes TLS connections and hands the bytes on, both ways."""

import socket
import ssl
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from controlplane.embedded.server import HOST
from tests.helpers.certificates import Certificate


class TlsFront:
    """Listens on a port of its own. A context manager.

    Args:
        port: of the server behind it, on this machine.
        certificate: what the front shows.
    """

    def __init__(self, port: int, certificate: Certificate) -> None:
        """Begin to listen."""
        self._behind = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.certificate, certificate.key)
        self._listening = socket.create_server((HOST, 0))
        self.port = int(self._listening.getsockname()[1])
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self._run(self._accept)

    def __enter__(self) -> Self:
        """The front itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End every connection."""
        with suppress(OSError):  # wakes the thread that waits for a connection, which closing alone does not
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self._connections:
            with suppress(OSError):  # it may have ended by itself
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listening.accept()
            except OSError:
                return  # closed
            try:
                secured = self._context.wrap_socket(plain, server_side=True)
            except OSError:
                plain.close()  # a client that does not trust the certificate, or speaks no TLS
                continue
            behind = socket.create_connection((HOST, self._behind))
            self._connections += [secured, behind]
            self._run(lambda one=secured, other=behind: _hand_on(one, other))
            self._run(lambda one=behind, other=secured: _hand_on(one, other))

    def _run(self, target: object) -> None:
        thread = threading.Thread(target=target, daemon=True)  # type: ignore[arg-type]  # a function without arguments
        self._threads.append(thread)
        thread.start()


def _hand_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):  # one of the two may be gone
        while data := one.recv(65_536):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
