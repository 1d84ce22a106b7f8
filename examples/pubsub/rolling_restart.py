"""A restart of all brokers under traffic, one after the other, and what it cost.

python -m examples.pubsub.rolling_restart --cluster local --bootstrap-servers localhost:9092 --namespace shop/orders

It starts the brokers itself, each as a process. The exit status is 1 if a message that was acknowledged is missing, or
if a message is there twice or out of order.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from controlplane import routing_client
from examples.pubsub.client import PubSubClient
from examples.pubsub.traffic import Traffic, new_topics
from examples.serving.command_line import parser_of, print_results_only, security_in
from examples.serving.restarts import Processes, restart_each, wait_until

_REST_S: Final = 3.0


class BrokersInTable:
    """The brokers of a namespace as the routing table shows them to a client.

    Args:
        client: follows the table.
        namespace: the namespace whose bundles are looked at.
        broker_ids: the brokers.
    """

    def __init__(self, client: PubSubClient, namespace: str, broker_ids: Sequence[str]) -> None:
        self._client = client
        self._namespace = namespace
        self._incarnations = dict.fromkeys(broker_ids, 0)

    def wait_until_served(self, *started: str) -> None:
        """Wait until the processes that were started are members, and a member serves every bundle of the namespace.

        Raises:
            TimeoutError: that has not come about.
        """
        what = f"brokers {', '.join(started)} are members, and every bundle of namespace {self._namespace!r} is served"
        wait_until(lambda: self._is_served(started), f"{what}; does the namespace exist, and does a controller run?")
        table = self._client.routing.table
        if table is not None:
            self._incarnations = {broker_id: table.nodes[broker_id].incarnation for broker_id in self._incarnations}

    def _is_served(self, started: Sequence[str]) -> bool:
        table = self._client.routing.table
        if table is None or self._namespace not in table.namespaces:
            return False
        living = {
            broker_id: row.incarnation
            for broker_id, row in table.nodes.items()
            if broker_id in self._incarnations and row.status.lives
        }
        bundles = (bundle for bundle in table.bundles.values() if bundle.namespace == self._namespace)
        return all(living.get(each, 0) > self._incarnations[each] for each in started) and all(
            bundle.serving_node in living for bundle in bundles
        )


def broker_command(
    cluster: str, bootstrap_servers: str, directory: Path, security: Path | None = None
) -> Callable[[str], list[str]]:
    """The command line of a broker, by its id."""

    def command(broker_id: str) -> list[str]:
        return [
            *(sys.executable, "-m", "examples.pubsub.broker", "--cluster", cluster, "--node-id", broker_id),
            *("--bootstrap-servers", bootstrap_servers, "--directory", str(directory)),
            *(("--security", str(security)) if security else ()),
        ]

    return command


def main() -> int:
    """The command line. Returns the exit status."""
    options = _options()
    print_results_only()
    directory = options.directory or Path(tempfile.mkdtemp(prefix="pubsub-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"topics and outputs of the brokers: {directory}")
    broker_ids = [f"broker-{number}" for number in range(1, options.brokers + 1)]
    topics = new_topics(options.namespace, options.topics)
    command = broker_command(options.cluster, options.bootstrap_servers, directory, options.security)
    routing = routing_client(options.cluster, options.bootstrap_servers, security=security_in(options.security))
    with PubSubClient(routing) as client, Processes(directory, command) as processes:
        for broker_id in broker_ids:
            processes.start(broker_id)
        brokers = BrokersInTable(client, options.namespace, broker_ids)
        brokers.wait_until_served(*broker_ids)
        traffic = Traffic(client, topics, options.rate)
        traffic.start()
        restart_each(processes, brokers.wait_until_served, kill=options.kill, rest_s=_REST_S)
        findings = traffic.stop()
        processes.stop(*broker_ids)  # In good order in any case: who comes next finds no dead owners.
    print(f"sent: {findings.sent}")
    print(f"acknowledged: {findings.acknowledged}")
    print(f"missing: {findings.missing}")
    print(f"doubled: {findings.doubled}")
    print(f"out of order for their key: {findings.out_of_order}")
    print(f"sent more than 3 times: {traffic.of_many_attempts}")
    print(f"given up: {traffic.given_up}")
    print("\n".join(traffic.latencies.lines("topics")))
    return 0 if findings.are_good else 1


def _options() -> argparse.Namespace:
    parser = parser_of("Restart all brokers under traffic, one after the other.")
    parser.add_argument("--namespace", required=True, help="of the topics; it has to exist")
    parser.add_argument("--directory", type=Path, help="of topics and outputs; default: a new one for temporary files")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--topics", type=int, default=12)
    parser.add_argument("--rate", type=float, default=300.0, help="messages a second to all topics together")
    parser.add_argument("--kill", action="store_true", help="SIGKILL instead of SIGTERM")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
