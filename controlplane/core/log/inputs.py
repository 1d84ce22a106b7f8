"""The union of all input records: what nodes, controllers and operators append to the input topics."""

from typing import TypeAlias

from controlplane.core.bundles.reports import LoadReport
from controlplane.core.intents.intent import Intent
from controlplane.core.membership.inputs import Heartbeat, NodeJoined, NodeLeaving, NodeLeft, Tick

InputPayload: TypeAlias = Heartbeat | Tick | LoadReport | NodeJoined | NodeLeaving | NodeLeft | Intent
