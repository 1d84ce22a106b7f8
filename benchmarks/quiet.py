"""Keeps the parts' logs out of a benchmark's figures."""

import logging

import structlog


def only_warnings() -> None:
    """Log warnings and worse from here on; each process of a benchmark calls it once."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
