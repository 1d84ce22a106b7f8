"""A restart of all nodes of the key-value service under traffic, one after the other, and what it cost.

python -m examples.kv.rolling_restart --cluster local --bootstrap-servers localhost:9092

It starts the nodes itself, each as a process. The exit status is 1 if a request was given up, if a key reads what it
cannot be, or if a node acknowledged a write although another one had taken its place.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from examples.kv.client import Acknowledged, KvClient
from examples.kv.history import judge
from examples.kv.traffic import Traffic
from examples.serving.command_line import parser_of, print_results_only, security_in
from examples.serving.restarts import Latencies, Processes, restart_each, wait_until

_REST_S: Final = 2.0


def node_command(
    cluster: str, bootstrap_servers: str, copy_s: float, security: Path | None = None
) -> Callable[[str], list[str]]:
    """The command line of a node, by its id."""

    def command(node_id: str) -> list[str]:
        return [
            *(sys.executable, "-m", "examples.kv.node", "--cluster", cluster, "--node-id", node_id),
            *("--bootstrap-servers", bootstrap_servers, "--copy-s", str(copy_s)),
            *(("--security", str(security)) if security else ()),
        ]

    return command


class NodesInTable:
    """The nodes of the service as the routing table shows them to a client."""

    def __init__(self, client: KvClient, node_ids: list[str]) -> None:
        self._client = client
        self._incarnations = dict.fromkeys(node_ids, 0)

    def wait_until_served(self, *started: str) -> None:
        """Wait until the started processes are members, and each node leads as many slots as any other, or one less.

        Raises:
            TimeoutError: that has not come about.
        """
        wait_until(lambda: self._is_served(started), f"{', '.join(started)} are members and lead their share of slots")
        table = self._client.routing.table
        if table is not None:
            self._incarnations = {name: table.nodes[name].incarnation for name in self._incarnations}

    def _is_served(self, started: tuple[str, ...]) -> bool:
        table = self._client.routing.table
        if table is None:
            return False
        living = {name: row.incarnation for name, row in table.nodes.items() if row.status.lives}
        leads = dict.fromkeys(self._incarnations, 0)
        for slot in table.slots:
            if slot.leader not in leads or slot.next_leader is not None:
                return False
            leads[slot.leader] += 1
        is_even = max(leads.values()) - min(leads.values()) <= 1
        return is_even and all(living.get(each, 0) > self._incarnations[each] for each in started)


def main() -> int:
    """The command line. Returns the exit status."""
    options = _options()
    print_results_only()
    directory = Path(tempfile.mkdtemp(prefix="kv-"))
    print(f"outputs of the nodes: {directory}")
    node_ids = [f"kv-{number}" for number in range(1, options.nodes + 1)]
    command = node_command(options.cluster, options.bootstrap_servers, options.copy_s, options.security)
    latencies, history = Latencies(), list[Acknowledged]()
    client = KvClient(
        options.cluster,
        options.bootstrap_servers,
        security=security_in(options.security),
        on_end=lambda key, taken_ms: latencies.note(_slot_of(client, key), taken_ms),
    )
    with client, Processes(directory, command) as processes:
        for node_id in node_ids:
            processes.start(node_id)
        nodes = NodesInTable(client, node_ids)
        nodes.wait_until_served(*node_ids)
        traffic = Traffic(client, options.rate, on_acknowledged=history.append)
        traffic.start()
        restart_each(processes, nodes.wait_until_served, kill=options.kill, rest_s=_REST_S)
        traffic.stop()
        counts = client.take_counts()
        wrong = _wrong_values(client, traffic)
        processes.stop(*node_ids)  # In good order in any case: who comes next finds no dead leaders.
    verdict = judge(history)
    print(f"answered: {counts.answered}")
    print(f"given up: {counts.failed}")
    print(f"sent more than 3 times: {counts.of_many_attempts}")
    print(f"keys that read what they cannot be: {len(wrong)}")
    print(f"writes acknowledged: {verdict.writes}")
    print(f"writes acknowledged by a node that was replaced: {len(verdict.stale) + len(verdict.doubled)}")
    print("\n".join(latencies.lines("slots")))
    return 0 if not counts.failed and not wrong and verdict.linearizable else 1


def _slot_of(client: KvClient, key: str) -> str:
    table = client.routing.table
    return str(table.slot_for(key).slot_id) if table else "?"


def _wrong_values(client: KvClient, traffic: Traffic) -> list[str]:
    """What is wrong with the values of the keys that were written, as sentences."""
    read = [(ledger, key, client.get(key)) for ledger in traffic.ledgers for key in sorted(ledger.attempted)]
    found = (ledger.contradiction(key, value) for ledger, key, value in read)
    return [sentence for sentence in found if sentence is not None]


def _options() -> argparse.Namespace:
    parser = parser_of("Restart all nodes under traffic, one after the other.")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rate", type=float, default=300.0, help="requests a second")
    parser.add_argument("--copy-s", type=float, default=2.0, help="how long a copy of a slot takes at least")
    parser.add_argument("--kill", action="store_true", help="SIGKILL instead of SIGTERM")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
