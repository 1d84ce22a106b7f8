"""Samples of the subject ``intents``: an intent of every kind, and the answers to intents."""

from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import Intent
from tests.golden.samples.sample import Sample

_INTENTS: dict[str, dict[str, str]] = {
    "create_namespace": {"namespace": "kv"},
    "create_namespace with every argument": {"namespace": "kv", "bundles": "16"},
    "delete_namespace": {"namespace": "kv"},
    "transfer_bundles": {"bundles": "kv/0x00000000_0x40000000,kv/0x40000000_0x80000000", "node": "n1"},
    "unload_bundles": {"bundles": "kv"},
    "split_bundles": {
        "bundles": "kv/0x00000000_0x40000000",
        "by": "positions",
        "numbers": "0x10000000,0x20000000",
    },
    "set_tenant": {"tenant": "acme", "clusters": "eu,us"},
    "delete_tenant": {"tenant": "acme"},
    "override_self_preservation": {},
    "drain_node": {"node": "n1"},
    "undrain_node": {"node": "n1"},
    "exclude_node": {"node": "n1"},
    "include_node": {"node": "n1"},
    "set_node": {"node": "n1", "weight": "3", "zone": "zone-b"},
    "reset_node": {"node": "n1"},
    "pin_slots": {"slots": "3,7-9", "node": "n1", "leads": "true"},
    "unpin_slots": {"slots": "3,7-9", "node": "n1"},
    "exclude_slots": {"slots": "3,7-9", "node": "n1"},
    "include_slots": {"slots": "3,7-9", "node": "n1"},
    "refresh_table": {},
    "pause_reconciliation": {},
    "resume_reconciliation": {},
    "change_policy": {"tolerance_percent": "5", "zone_rule": "hard"},
    "change_policy to the contrary": {"tolerance_percent": "6", "zone_rule": "ignored"},
    "raise_feature_level": {"level": "2", "upgraded": "c2 c3"},
    "resign_leader": {"controller": "c1"},
    "take_snapshot": {},
}
"""By the kind's name: an intent of every kind, with all the arguments that its operation declares."""

INTENTS = (
    Sample("full", Intent("intent-1", "create_namespace", "ada", {"namespace": "kv", "comment": "für alle"})),
    Sample("plain", Intent("intent-2", "override_self_preservation", "", {})),
    *(Sample(name, Intent(f"intent-{name}", name.split()[0], "ada", given)) for name, given in _INTENTS.items()),
)

EVENTS = (
    IntentAnswered("intent-1", "create_namespace", "ada", IntentOutcome.DONE, "created"),
    IntentAnswered("intent-2", "fly", "ada", IntentOutcome.REFUSED, "unknown kind"),
    IntentAnswered("intent-3", "drain_node", "ada", IntentOutcome.SUPERSEDED, "by intent-4"),
)
