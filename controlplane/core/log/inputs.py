"""The union of all input records: what nodes, controllers and operators append to the input topics."""

from typing import Final, TypeAlias

from controlplane.config import HEARTBEATS, INTENTS, MEMBERSHIP
from controlplane.core.bundles.reports import LoadReport
from controlplane.core.intents.intent import Intent
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick

InputPayload: TypeAlias = Heartbeat | Tick | LoadReport | NodeJoined | NodeLeaving | NodeLeft | Intent

DECIDED_TOPICS: Final = (MEMBERSHIP, INTENTS)
"""Topics of which each record waits until a decision takes it up, or a refusal answers it."""
INPUT_TOPICS: Final = (HEARTBEATS, *DECIDED_TOPICS)
"""Topics that decisions are taken from; the positions of a decision are their next offsets."""
