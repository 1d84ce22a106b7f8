"""What embedding the agent or the client does to the program around it."""

import subprocess
import sys

import pytest

from controlplane.bootstrap import members
from controlplane.core.values.addresses import Address
from controlplane.errors import ConfigurationError
from controlplane.node.description import NodeDescription

PROGRAM = """
import logging
{before}
import structlog
from controlplane.bootstrap.members import log_through_the_standard_library
log_through_the_standard_library()
log = structlog.get_logger("controlplane.test").bind(node="n1")
log.debug("quiet")
log.warning("loud")
print("result")
"""


def run(before: str) -> subprocess.CompletedProcess[str]:
    """Run the program with some set-up in front."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True, check=True, timeout=60
    )


def test_standard_output_belongs_to_the_program() -> None:
    """A program that never heard of structlog gets warnings where logging sends them, and nothing on its output."""
    done = run("")
    assert done.stdout == "result\n"
    assert "loud" in done.stderr
    assert "quiet" not in done.stderr


def test_the_program_decides_about_levels() -> None:
    """Its logging configuration is ours."""
    assert "quiet" in run("logging.basicConfig(level=logging.DEBUG)").stderr


def test_a_structlog_that_is_configured_stays_as_it_is() -> None:
    """A program that uses structlog itself has chosen already."""
    before = "import structlog; structlog.configure(processors=[structlog.processors.JSONRenderer()])"
    assert '"event": "quiet"' in run(before).stdout


def addresses_of(monkeypatch: pytest.MonkeyPatch, **addresses: object) -> tuple[Address, ...]:
    """Where a node would say that it serves; no connection is opened."""
    told: list[NodeDescription] = []
    for name in ("KafkaEventWriter", "KafkaLogReader"):
        monkeypatch.setattr(members, name, lambda *_: None)
    monkeypatch.setattr(members, "NodeAgent", lambda *, node, **_: told.append(node))
    members.node_agent("demo", "localhost:1", "n1", addresses=addresses)  # type: ignore[arg-type] # as users write it
    return told[0].addresses


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [
        (("10.0.0.7", 8080), "10.0.0.7", 8080),
        ("10.0.0.7:8080", "10.0.0.7", 8080),
        ("node-1.example:80", "node-1.example", 80),
        ("[::1]:8080", "::1", 8080),
        (("::1", 8080), "::1", 8080),
    ],
)
def test_an_address_is_a_text_or_a_pair(monkeypatch: pytest.MonkeyPatch, written: object, host: str, port: int) -> None:
    """As people write addresses elsewhere, and as programs have them."""
    assert addresses_of(monkeypatch, http=written) == (Address("http", host, port),)


@pytest.mark.parametrize(
    "written", ["10.0.0.7", ":80", "10.0.0.7:", "::1:8080", "h:http", "http://h:80", ("h", "80"), ("h",), 80, None]
)
def test_another_form_is_refused_with_the_right_one(monkeypatch: pytest.MonkeyPatch, written: object) -> None:
    """The sentence names the address and shows how to write it."""
    with pytest.raises(ConfigurationError) as refused:
        addresses_of(monkeypatch, http=written)
    assert str(refused.value) == (
        f"address 'http' is {written!r}: write 'HOST:PORT' or (HOST, PORT), as in {{'http': '10.0.0.7:8080'}}"
    )


@pytest.mark.parametrize("written", ["h:0", "h:65536", ("h", -1)])
def test_a_port_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, written: object) -> None:
    """The leader would refuse the join, and the node would wait for ever."""
    with pytest.raises(ConfigurationError, match="port"):
        addresses_of(monkeypatch, http=written)
