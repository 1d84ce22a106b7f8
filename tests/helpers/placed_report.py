"""What counts of a load report, with its place in the log."""

from collections.abc import Sequence
from typing import NamedTuple

from controlplane.core.bundles.load.reported_state import Position
from controlplane.core.bundles.load.view import Resources
from controlplane.core.bundles.reports import BundleLoad


class PlacedReport(NamedTuple):
    """One report."""

    position: Position
    node_id: str
    incarnation: int
    resources: Resources
    version: str
    bundles: Sequence[BundleLoad]
