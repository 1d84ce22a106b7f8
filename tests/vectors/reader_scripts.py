"""All reader scripts."""

from typing import Any

from tests.vectors.damaged_scripts import damaged, hidden_markers, odd_records, of_other_logs, of_unknown_logs
from tests.vectors.handoff_scripts import handoffs
from tests.vectors.narrow_scripts import narrow
from tests.vectors.ordinary_scripts import compacted, of_later_versions, plain, refused, unreadable_rows


def reader_scripts() -> list[dict[str, Any]]:
    """The contents of ``reader_scripts.json``."""
    scripts = [
        *plain(),
        *compacted(),
        *refused(),
        *of_later_versions(),
        *unreadable_rows(),
        *damaged(),
        *odd_records(),
        *hidden_markers(),
        *of_other_logs(),
        *of_unknown_logs(),
        *narrow(),
        *handoffs(),
    ]
    return [script.document() for script in scripts]
