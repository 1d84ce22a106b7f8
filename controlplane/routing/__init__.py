"""The routing client: which node serves a key now, from the ``routing-table`` topic, kept up to date in the background.

with routing_client("demo", "localhost:9092") as client:   # controlplane.bootstrap.members
    route = client.route("user-17")
    host, port = route.address("kv").host, route.address("kv").port
"""

from controlplane.core.routing.replica import RoutingTable
from controlplane.routing.client import ChangeCallback, RoutingClient
from controlplane.routing.route import BundleRoute, Route

__all__ = ["BundleRoute", "ChangeCallback", "Route", "RoutingClient", "RoutingTable"]
