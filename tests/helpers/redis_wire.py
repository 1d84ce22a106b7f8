"""Redis' protocol without a client library."""

import socket

from controlplane.embedded.server import HOST


def ask_redis(port: int, *words: str) -> bytes:
    """The raw answer to one command over a plain socket. OSError without an answer within half a second."""
    command = f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    with socket.create_connection((HOST, port), timeout=0.5) as connection:
        connection.sendall(command.encode())
        return connection.recv(1024)
