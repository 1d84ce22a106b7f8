"""The routing client: finds the node that serves a key, from the ``routing-table`` topic, followed in the background.

with controlplane.routing_client("demo", "localhost:9092") as client:
    route = client.route("user-17")
    host, port = route.address("kv").host, route.address("kv").port
    node_id = client.ring.owner("user-17")  # without slots
"""

from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.routing.replica import RoutingTable
from controlplane.core.values.addresses import Address
from controlplane.routing.client import ChangeCallback, RoutingClient
from controlplane.routing.ring_route import RingRoute, TableRing
from controlplane.routing.route import BundleRoute, Route

__all__ = [
    "Address",
    "BundleRoute",
    "ChangeCallback",
    "OwnershipState",
    "RingRoute",
    "Route",
    "RoutingClient",
    "RoutingTable",
    "TableRing",
]
