"""The options that all commands of the examples have, and what they print where."""

import argparse
import logging
import sys
from pathlib import Path

import structlog


def parser_of(description: str) -> argparse.ArgumentParser:
    """A parser of the options by which every command finds its cluster."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--security", type=Path, help="a file with Kafka's settings for TLS and login, KEY=VALUE lines")
    return parser


def security_in(path: Path | None) -> dict[str, str]:
    """The settings in a file, with librdkafka's names; empty without a file. So no command line has passwords."""
    if path is None:
        return {}
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def print_results_only() -> None:
    """Leave standard output to the command's results: warnings go to standard error."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
