"""``python -m tests.kills --repetitions 20``: a cluster on parts of its own, deaths, promises, recovery times."""

import argparse
import logging
import sys
import tempfile
from pathlib import Path

import structlog

from controlplane.embedded.services import EmbeddedServices
from tests.helpers.real_cluster import RealCluster
from tests.kills.cluster import KvCluster
from tests.kills.killing import repeat, summary


def main() -> None:
    """Print a line for each repetition and the distribution of the times; exits with an error at a broken promise."""
    parser = argparse.ArgumentParser(description="Kill nodes and leaders under traffic and check every promise.")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second")
    parser.add_argument("--folder", type=Path, help="data and logs, kept; a temporary one otherwise")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory(prefix="kills-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        with EmbeddedServices(folder / "parts") as parts:
            real = RealCluster("kills", parts.bootstrap_servers, parts.redis_url, folder)
            cluster = KvCluster(real, controllers=2, nodes=options.nodes, rate_per_s=options.rate, history=[])
            with cluster:
                done = []
                for repetition in repeat(cluster, options.repetitions):
                    sys.stdout.write(f"{repetition}\n")
                    sys.stdout.flush()
                    done.append(repetition)
                sys.stdout.write(f"{summary(done)}\n")


if __name__ == "__main__":
    main()
