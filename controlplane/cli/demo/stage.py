"""The processes of the demo, and their folder."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from controlplane.cli.common.invocation import DELTA_FOLDER, DEMO_FOLDER, Invocation
from controlplane.cli.demo.checks import StepFailedError
from controlplane.cli.demo.processes import DemoProcess, find_holder, hand_over
from controlplane.cli.demo.traffic import Counts, read_counts
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.embedded.ivy import IVY_SETTINGS_VARIABLE
from controlplane.embedded.jars import CACHE_VARIABLE
from controlplane.embedded.java import JAVA_HOME_VARIABLE
from controlplane.embedded.services import addresses_path, read_addresses
from controlplane.errors import PrerequisiteError
from controlplane.resources import resource_path

_PATHS_OF_THE_MACHINE = (CACHE_VARIABLE, IVY_SETTINGS_VARIABLE, JAVA_HOME_VARIABLE)
NODE_EXAMPLE = "examples/kv_and_pubsub.py"
_STOP_ORDER = (("traffic",), ("node", "pipeline"), ("controller",), ("parts",))
"""The order of stopping, by the beginning of the names: a process stops before those that it needs."""


class Stage:
    """Starts, kills and stops the demo's processes.

    Args:
        invocation: the global options; the demo's folder is below the data folder.

    Raises:
        PrerequisiteError: an earlier demo still runs in this folder, or the installation lacks the services.
    """

    def __init__(self, invocation: Invocation) -> None:
        self.cluster: ClusterConfig = invocation.cluster
        self.home = (invocation.data_dir / DEMO_FOLDER).absolute()
        self.log_dir = self.home / "logs"
        self.delta_dir = self.home / DELTA_FOLDER
        self.topics_dir = self.home / "topics"
        self.processes: dict[str, DemoProcess] = {}
        self.kept = False
        # `examples` is no part of the package, so the folder above it is added to Python's path.
        self._example_root = resource_path(NODE_EXAMPLE).parents[1]
        holder = find_holder(self.home)
        if holder is not None:
            raise PrerequisiteError(
                f"a demo that was kept still runs in {self.home}: stop it with 'controlplane demo --stop' first"
            )
        shutil.rmtree(self.home, ignore_errors=True)
        self.log_dir.mkdir(parents=True)

    @property
    def kafka(self) -> KafkaConfig:
        """The addresses of the demo's Kafka, once the services run."""
        return KafkaConfig(read_addresses(self.home).bootstrap_servers)

    @property
    def services_answer(self) -> bool:
        """Whether Kafka and Valkey are ready."""
        return addresses_path(self.home).exists()

    def start_services(self) -> None:
        """Start Kafka and Valkey; ready when :attr:`services_answer`."""
        self._start("parts", [*self._command(), "up"])

    def command(self, *words: str) -> list[str]:
        """A ``controlplane`` command on this cluster as a list of arguments."""
        addresses = read_addresses(self.home)
        connection = ("--bootstrap-servers", addresses.bootstrap_servers, "--redis-url", addresses.redis_url)
        return [*self._command(), *connection, *words]

    def start_command(self, name: str, *words: str) -> DemoProcess:
        """Start a ``controlplane`` command on this cluster as a process of its own."""
        return self._start(name, self.command(*words))

    def start_module(self, name: str, module: str, *words: str) -> DemoProcess:
        """Start a module of the example on this cluster as a process of its own."""
        connection = ("--cluster", self.cluster.name, "--bootstrap-servers", self.kafka.bootstrap_servers)
        return self._start(name, [sys.executable, "-m", module, *connection, *words])

    def environment(self) -> dict[str, str]:
        """The environment of the processes: this process's without settings that would lead them to another cluster."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CONTROLPLANE_")}
        # They run in another folder than this process.
        paths = {name: str(Path(os.environ[name]).absolute()) for name in _PATHS_OF_THE_MACHINE if os.environ.get(name)}
        path = os.pathsep.join(part for part in (str(self._example_root), os.environ.get("PYTHONPATH")) if part)
        return {**kept, **paths, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}

    def watch(self) -> None:
        """Check that every process that should run does.

        Raises:
            StepFailedError: a process ended. The message contains the end of its log.
        """
        for process in self.processes.values():
            if process.ended_unasked:
                raise StepFailedError(
                    f"{process.name} ended by itself. The end of {process.log_path}:\n{process.log_tail()}"
                )

    def counts(self) -> Counts:
        """What all traffic clients counted so far."""
        total = Counts()
        for name, process in list(self.processes.items()):
            if name.startswith("traffic"):
                total += read_counts(process.log_path)
        return total

    def stop(self) -> None:
        """Stop everything, the processes that need others first. The nodes cannot hand their slots over any more."""
        for group in self._in_stop_order():
            for process in group:
                if process.name.startswith("node"):
                    process.kill()
                else:
                    process.ask_to_stop()
            for process in group:
                process.wait()

    def keep(self) -> None:
        """Leave everything running after this process ends. ``controlplane demo --stop`` ends it."""
        hand_over(self._in_stop_order(), self.home)
        self.kept = True

    def _in_stop_order(self) -> list[list[DemoProcess]]:
        """The processes in groups that stop together."""
        return [
            [process for name, process in self.processes.items() if name.startswith(prefixes)]
            for prefixes in _STOP_ORDER
        ]

    def _start(self, name: str, command: Sequence[str]) -> DemoProcess:
        process = DemoProcess(name, command, self.log_dir, self.environment(), self.home)
        self.processes[name] = process
        return process

    def _command(self) -> list[str]:
        options = ("--cluster", self.cluster.name, "--data-dir", str(self.home), "--log-format", "json")
        return [sys.executable, "-m", "controlplane.cli", *options]
