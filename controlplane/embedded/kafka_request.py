"""One request in Kafka's own protocol, over a connection of its own."""

import socket
import struct
from typing import Final

_SIZE: Final = struct.Struct(">i")
_CORRELATION_ID_BYTES: Final = 4


def ask(host: str, port: int, request: bytes, timeout_s: float) -> bytes:
    """Send a request, and wait for its answer.

    Args:
        host: the server's host.
        port: the server's port.
        request: the request with its header, without its size.
        timeout_s: how long to wait for the connection, and then for each part of the answer.

    Returns:
        The answer with its header, which begins with the correlation id, without its size.

    Raises:
        OSError: there is no connection, or no whole answer.
    """
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.sendall(_SIZE.pack(len(request)) + request)
        with connection.makefile("rb") as stream:
            head = stream.read(_SIZE.size)
            if len(head) < _SIZE.size:
                raise ConnectionError(f"{host}:{port} ended the connection without an answer")
            (size,) = _SIZE.unpack(head)
            if size <= _CORRELATION_ID_BYTES:
                raise ConnectionError(f"{host}:{port} does not speak Kafka's protocol: an answer of {size} bytes")
            answer = stream.read(size)
    if len(answer) < size:
        raise ConnectionError(f"{host}:{port} ended the connection after {len(answer)} of {size} bytes of an answer")
    return answer
