"""Decisions in words."""

from dataclasses import replace

from controlplane.config import ClusterConfig
from controlplane.inspection.decisions import certificate_text
from tests.helpers.published_world import PublishedWorld


def test_certificate_above_the_least_is_not_called_proven() -> None:
    """The words follow the numbers."""
    world = PublishedWorld(ClusterConfig("local"))
    world.admit("n1", "n2")
    certificate = next(decision.certificate for decision in world.decisions if decision.certificate is not None)
    assert certificate_text(certificate) == "minimal: proven least"
    worse = replace(certificate, moved=certificate.least_moved + 2, lost_slots=(3, 4))
    assert certificate_text(worse) == (
        "minimal: 2 moves and 0 leader changes over the least; no living replica of 2 slots"
    )
    one = replace(certificate, moved=certificate.least_moved + 1, lost_slots=(3,))
    assert certificate_text(one) == "minimal: 1 move and 0 leader changes over the least; no living replica of 1 slot"
