"""A request in Kafka's protocol is answered as a whole, or with an error."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from controlplane.embedded.kafka_request import ask
from controlplane.embedded.server import HOST
from tests.helpers.kafka_requests import ask_any

REQUEST = struct.pack(">hhih", 18, 0, 1, -1)
ANSWER = struct.pack(">i", 1) + b"body"


@contextmanager
def server_that_sends(*sent: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server that takes one request for each of these texts, sends the text and ends the connection."""
    heard: list[bytes] = []

    def serve() -> None:
        for text in sent:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as stream:
                heard.append(stream.read(struct.unpack(">i", stream.read(4))[0]))
                connection.sendall(text)

    with socket.create_server((HOST, 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], heard
        thread.join(5)
        assert not thread.is_alive()


def framed(answer: bytes) -> bytes:
    """An answer after its size."""
    return struct.pack(">i", len(answer)) + answer


def test_a_whole_answer_is_returned_without_its_size() -> None:
    """The request arrives behind its size, and nothing of the answer is missing."""
    with server_that_sends(framed(ANSWER)) as (port, heard):
        assert ask(HOST, port, REQUEST, timeout_s=5) == ANSWER
    assert heard == [REQUEST]


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "without an answer"),
        (b"\0\0", "without an answer"),
        (framed(ANSWER)[:-1], "after 7 of 8 bytes"),
        (framed(ANSWER[:4]), "an answer of 4 bytes"),
        (struct.pack(">i", -2) + ANSWER, "an answer of -2 bytes"),
    ],
)
def test_an_answer_that_is_cut_short_is_an_error(sent: bytes, said: str) -> None:
    """A server that is killed within an answer has not answered: what it sent would be read as something else."""
    with server_that_sends(sent) as (port, _), pytest.raises(ConnectionError, match=said):
        ask(HOST, port, REQUEST, timeout_s=5)


def test_the_next_broker_is_asked_after_an_answer_that_is_cut_short() -> None:
    """Tests ask any broker, of which one may just be ending."""
    with server_that_sends(framed(ANSWER)[:-1], framed(ANSWER)) as (port, heard):
        assert ask_any(f"{HOST}:{port},{HOST}:{port}", REQUEST).read() == ANSWER
    assert heard == [REQUEST, REQUEST]
