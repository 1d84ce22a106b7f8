"""Redis' protocol by hand, for tests of what is below the client library."""

import socket

from controlplane.embedded.server import HOST


def ask_redis(port: int, *words: str) -> bytes:
    """One command over a plain socket; the raw answer. OSError when nobody answers within half a second."""
    command = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    with socket.create_connection((HOST, port), timeout=0.5) as connection:
        connection.sendall(command.encode())
        return connection.recv(1024)
