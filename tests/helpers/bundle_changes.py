"""Rows of the tables that say which bundles there are, and which have ended."""

from datetime import date
from typing import Any

from streaming.contracts.changes import BUNDLE_CHANGES_TABLE, BUNDLES_TABLE


def change(bundle_id: str, append_time_ms: int, seq: int, *, ended: bool = True) -> dict[str, Any]:
    """A row of ``bundle_changes``."""
    empty = dict.fromkeys(BUNDLE_CHANGES_TABLE.columns)
    numbers = dict.fromkeys(("epoch", "term", "decided_at_ms"), 1)
    texts = {"namespace": "kv", "day": date(2026, 1, 1), "cause_kinds": [], "causes": [], "bundle_id": bundle_id}
    return {**empty, **numbers, **texts, "seq": seq, "append_time_ms": append_time_ms, "ended": ended}


def present(bundle_id: str) -> dict[str, Any]:
    """A row of ``bundles``."""
    numbers = dict.fromkeys(("bucket", "seq", "append_time_ms", "epoch", "owner_epoch", "version"), 1)
    texts = {"namespace": "kv", "state": "Owned", "parent": "", "is_forced": False}
    return {**dict.fromkeys(BUNDLES_TABLE.columns), **numbers, **texts, "bundle_id": bundle_id}
