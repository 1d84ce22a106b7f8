"""Requests of Kafka's own protocol that Python's client does not have: sent to the first broker that answers."""

from io import BytesIO
from typing import Final

from controlplane.embedded.kafka_request import ask

NULL_CLIENT: Final = -1
"""The client's name in a request's header: none."""
NO_TAGS: Final = b"\0"
_TIMEOUT_S: Final = 10.0


def ask_any(bootstrap_servers: str, request: bytes) -> BytesIO:
    """The first answer of a broker to a request with its header."""
    errors = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.rpartition(":")
        try:
            return BytesIO(ask(host, int(port), request, _TIMEOUT_S))
        except OSError as error:
            errors.append(f"{server}: {error}")
    raise AssertionError(f"no broker answered: {errors}")


def length_of(count: int) -> bytes:
    """A length in Kafka's compact encoding: one more than it, as a variable-length integer."""
    value, encoded = count + 1, bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def take_length(stream: BytesIO) -> int:
    """The length as Kafka's compact encoding has it; -1 for null."""
    value = shift = 0
    while True:
        byte = stream.read(1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value - 1


def take_text(stream: BytesIO) -> str:
    """The text that stands next, of a compact length."""
    return stream.read(max(0, take_length(stream))).decode()
