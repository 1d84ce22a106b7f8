"""Passwords and keys are nowhere to be seen: not in settings as they print, not among a process's words."""

from pathlib import Path

import pytest

from controlplane.cli.common.failures import ExitStatus
from controlplane.cli.common.invocation import Invocation
from controlplane.config import ClusterConfig, ControllerConfig, KafkaConfig
from streaming.config import PipelineConfig, SparkConfig
from tests.helpers.commands import RunCommand

SECRET = "open-sesame"  # noqa: S105 - what must not be shown
SECURITY = {"security.protocol": "SASL_SSL", "sasl.username": "ada", "sasl.password": SECRET}
REDIS_URL = f"rediss://user:{SECRET}@127.0.0.1:6380/0"


def test_settings_do_not_print_their_secrets() -> None:
    """A settings object ends up in a log or a traceback sooner or later."""
    kafka = KafkaConfig("localhost:9092", SECURITY)
    cluster = ClusterConfig("c")
    shown = [
        kafka,
        ControllerConfig(cluster, kafka, REDIS_URL, "c1"),
        PipelineConfig(cluster, kafka, Path("tables"), SparkConfig(jars=())),
        Invocation(cluster, "localhost:9092", REDIS_URL, SECURITY, {}, Path(), 1),
    ]
    assert [each for each in shown if SECRET in repr(each)] == []
    assert "localhost:9092" in repr(kafka)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--security", f"sasl.password={SECRET}"), "--security sasl.password=...: every user of this machine would"),
        (("--security", f"ssl.key.password={SECRET}"), "--security ssl.key.password=...: every user"),
        (("--redis-url", REDIS_URL), "--redis-url with a password: every user of this machine would see it"),
        (("--redis-url", f"redis://:{SECRET}@h:1/0"), "give the address in the environment, as CONTROLPLANE_REDIS_URL"),
    ],
)
def test_no_secret_is_taken_from_the_command_line(command: RunCommand, words: tuple[str, str], sentence: str) -> None:
    """What does not work there is not written there, and the refusal does not repeat it."""
    ran = command(*words, "acls", "show")
    assert ran.status == ExitStatus.CALLED_WRONGLY
    assert sentence in ran.err
    assert SECRET not in ran.err


def test_secrets_are_taken_from_a_file_and_from_the_environment(
    command: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both can be kept from others; an address or a setting without a secret may stand anywhere."""
    login = tmp_path / "login"
    login.write_text(f"sasl.password={SECRET}\n", encoding="utf-8")
    monkeypatch.setenv("CONTROLPLANE_REDIS_URL", REDIS_URL)
    assert command("--security", str(login), "acls", "show").status == ExitStatus.DONE
    monkeypatch.setenv("CONTROLPLANE_SECURITY", f"sasl.password={SECRET}")
    assert command("--redis-url", "redis://h:1/0", "acls", "show").status == ExitStatus.DONE
    assert command("--security", "sasl.username=ada", "acls", "show").status == ExitStatus.DONE
