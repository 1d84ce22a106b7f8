"""All tables, in the order in which the reference page shows them; and which of them a stream writes last."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controlplane.config import HEARTBEATS, LOAD_REPORTS
from streaming.contracts.changes import (
    BUNDLE_CHANGES_TABLE,
    BUNDLES_TABLE,
    INTENT_ANSWERS_TABLE,
    NODE_CHANGES_TABLE,
    SLOT_CHANGES_TABLE,
    SLOTS_TABLE,
)
from streaming.contracts.gaps import GAPS_TABLE
from streaming.contracts.loads import (
    BROKER_LOAD_TABLE,
    BUNDLE_LOAD_HISTORY_TABLE,
    BUNDLE_LOAD_TABLE,
    SHED_CANDIDATES_TABLE,
    SPLIT_CANDIDATES_TABLE,
)
from streaming.contracts.records import (
    DEAD_LETTERS_TABLE,
    DECISIONS_TABLE,
    HEARTBEATS_TABLE,
    INTENTS_TABLE,
    LOAD_REPORTS_TABLE,
    MEMBERSHIP_TABLE,
    TICKS_TABLE,
)
from streaming.contracts.table import TableContract

ALL_TABLES: Final[tuple[TableContract, ...]] = (
    DECISIONS_TABLE,
    SLOT_CHANGES_TABLE,
    SLOTS_TABLE,
    BUNDLE_CHANGES_TABLE,
    BUNDLES_TABLE,
    NODE_CHANGES_TABLE,
    INTENTS_TABLE,
    INTENT_ANSWERS_TABLE,
    MEMBERSHIP_TABLE,
    HEARTBEATS_TABLE,
    TICKS_TABLE,
    LOAD_REPORTS_TABLE,
    DEAD_LETTERS_TABLE,
    BUNDLE_LOAD_TABLE,
    BUNDLE_LOAD_HISTORY_TABLE,
    BROKER_LOAD_TABLE,
    SPLIT_CANDIDATES_TABLE,
    SHED_CANDIDATES_TABLE,
    GAPS_TABLE,
)

LAST_TABLE: Final[Mapping[str, TableContract]] = MappingProxyType(
    {HEARTBEATS: TICKS_TABLE, LOAD_REPORTS: BROKER_LOAD_TABLE}
)
"""The table that a topic's stream writes last, of streams that write several: a batch that it has is in all of them."""
