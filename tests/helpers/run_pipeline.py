"""The pipeline as a process to be killed: ``python run_pipeline.py SERVERS CLUSTER FOLDER BATCH_SIZE [MASTER]``."""

import sys
import threading
from functools import partial
from pathlib import Path

from controlplane.bootstrap.connections import kept_offsets, topic_id
from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.embedded.jars import spark_jars
from controlplane.embedded.java import find_java
from streaming.config import PipelineConfig, SparkConfig
from streaming.jobs.pipeline import run
from tests.helpers.pipeline_world import EAGER_RULES


def main(servers: str, cluster: str, folder: str, batch_size: str, master: str = "") -> None:
    """Run until standard input ends."""
    stop = threading.Event()
    config = PipelineConfig(
        cluster=ClusterConfig(cluster),
        kafka=KafkaConfig(servers),
        tables_dir=Path(folder),
        spark=SparkConfig(jars=spark_jars(), java_home=find_java().home, master=master),
        rules=EAGER_RULES,
        bucket_count=2,
        trigger_interval_ms=1_000,
        history_window_ms=60_000,
        max_records_per_batch=int(batch_size),
    )

    def stop_at_end_of_input() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    of_cluster = (config.cluster, config.kafka)
    run(config, stop, partial(kept_offsets, *of_cluster), partial(topic_id, *of_cluster))


if __name__ == "__main__":
    main(*sys.argv[1:])
