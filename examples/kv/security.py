"""Kafka's settings for TLS and login, from a file of lines ``KEY=VALUE``, so that no command line has passwords."""

from pathlib import Path


def security_in(path: Path | None) -> dict[str, str]:
    """The settings in a file, with librdkafka's names; empty without a file."""
    if path is None:
        return {}
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
