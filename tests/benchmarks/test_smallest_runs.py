"""Every benchmark runs: as a process, at its smallest size, and prints the figure that it is there for."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.embedded.kafka import EmbeddedKafka

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

IN_MEMORY = {
    "bundle_rules": r"\ntransfer, all pairs +\d+ results +\d+\.\d\d s\n(.*\n)*topic_count_equally_divide +\d",
    "hash_ring": r"\nowners +[\d,]+ look-ups/s\n2 replicas +[\d,]+ look-ups/s",
    "heartbeats": r"\n  in groups +[\d,]+ heartbeats/s",
    "apply": r"ratio to the first: \d+\.\d\d   target at most 1\.5",
    "decision": r"a node leaves +plan p50 +\d+ .* [\d.]+ x baseline",
    "movement": r"\nminimal +\d+ +(\d+\.\d{3}|-) +(\d+\.\d{3}|-) ",
}
"""The benchmarks that need no server, with a pattern of a line that holds their ratio or distribution."""
ON_KAFKA = {
    "handoff": r"\nbundles, 2 at once +4( +\d+\.\d){5}\n(.*\n)*ratio killed / planned, .* slots \d+, bundles \d+\n",
    "intake": r"ratio folded / bare: +\d+\.\d\d +target",
    "propagation": r"clients +from commit: p50 +-?\d+\.\d ms +p99 +\d+\.\d ms",
    "recovery": r"ratio without / with: \d+\.\d",
}
"""The same for those that need a broker."""
ON_SPARK = {
    "backlog": r"\nratio to real time: \d+\.\d\d; greatest MiB: driver ",
    "freshness": r"\nbundle_load +second +\d+( +\d+\.\d){3}\nbroker_load",
    "pipeline": r"\n +20 this +[\d,]+ +driver \d+\.\d s \d+ MiB, jvm \d+\.\d s [\d,]+ MiB, workers ",
}
"""The same for those that need Spark as well."""


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_benchmark_runs_at_its_smallest_size(name: str) -> None:
    """It ends well and says what it measured: the same code with other numbers is the measurement."""
    assert re.search(IN_MEMORY[name], _printed(name))


@pytest.mark.parametrize("name", ON_KAFKA)
def test_a_benchmark_on_kafka_runs_at_its_smallest_size(name: str, kafka_broker: EmbeddedKafka) -> None:
    """As above, in a cluster of its own on the broker of all tests."""
    assert re.search(ON_KAFKA[name], _printed(name, "--bootstrap-servers", kafka_broker.bootstrap_servers))


@pytest.mark.timeout(500)
@pytest.mark.parametrize("name", ON_SPARK)
def test_a_benchmark_on_spark_runs_at_its_smallest_size(name: str, kafka_broker: EmbeddedKafka) -> None:
    """As above; Spark takes its time to start."""
    printed = _printed(name, "--bootstrap-servers", kafka_broker.bootstrap_servers, timeout_s=400)
    assert re.search(ON_SPARK[name], printed)


def test_every_benchmark_has_a_smallest_run() -> None:
    """A file of the folder is a script with a run in this file, or a part that such a script imports."""
    files = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in BENCHMARKS.glob("*.py")}
    imported = {
        node.module.removeprefix("benchmarks.")
        for tree in files.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    parts = {name for name in files if name in imported and not _is_a_script(files[name])}
    assert files.keys() - parts - {"__init__"} == IN_MEMORY.keys() | ON_KAFKA.keys() | ON_SPARK.keys()


def _is_a_script(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.If) and "__main__" in ast.unparse(node.test) for node in tree.body)


def _printed(name: str, *words: str, timeout_s: float = 100) -> str:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--smallest", *words]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout_s)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
