"""Keeps the components' log lines out of a benchmark's output."""

import logging

import structlog


def only_warnings() -> None:
    """Log only warnings and errors from here on. Each process of a benchmark calls it once."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
