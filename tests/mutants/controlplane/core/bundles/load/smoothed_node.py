"""Bugs in ``controlplane/core/bundles/load/smoothed_node.py``."""

from typing import Final

from tests.mutants.mutant import Bug

BUGS: Final = (
    Bug(
        "a node's first measurement is averaged with the assumed full load",
        "if node.updated_at_ms != 0:",
        "if True:",
        ("broker_load_ema",),
    ),
    Bug(
        "a node's history and its measurement change places",
        "usage = node.smoothed_usage * weight + (1 - weight) * usage",
        "usage = usage * weight + (1 - weight) * node.smoothed_usage",
        ("broker_load_ema",),
    ),
)
