"""Nodes of a real cluster as processes of their own, which can be killed."""

import subprocess
import sys
from typing import Self

from tests.helpers.real_cluster import RealCluster


class NodeProcesses:
    """Plain nodes: ``controlplane node run``. A context manager, which kills those that still run."""

    def __init__(self, cluster: RealCluster) -> None:
        """Nobody runs."""
        self._cluster = cluster
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        """The nodes themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill everybody."""
        for name in list(self.running):
            self.kill(name)

    def start(self, name: str) -> None:
        """A process of that name; its output goes to a file beside the controllers'."""
        command = [
            *(sys.executable, "-m", "controlplane.cli", "--cluster", self._cluster.cluster.name),
            *("--bootstrap-servers", self._cluster.kafka.bootstrap_servers, "node", "run", "--node-id", name),
        ]
        with self._cluster.log_of(name).open("ab") as output:
            self.running[name] = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def kill(self, name: str) -> None:
        """SIGKILL: it does not leave."""
        process = self.running.pop(name)
        process.kill()
        process.wait(10)
