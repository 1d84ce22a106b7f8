"""Settings of the pipeline. Contradictory settings are refused when they are created."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.bundles.shedding.threshold import ThresholdSettings
from controlplane.core.bundles.splitting.limits import SplitSettings
from controlplane.errors import ConfigurationError
from streaming.contracts.catalog import ALL_TABLES
from streaming.contracts.records import DECISIONS_TABLE
from streaming.storage import StoragePath

DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
"""It keeps nothing itself, and asks the metastore."""
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """One Spark session, whose driver is this process.

    Attributes:
        jars: the connector's and Delta's jars, which pyspark does not carry.
        java_home: the Java to run on; None leaves it to JAVA_HOME and the PATH.
        cores: the number of tasks that run at once, and of parts into which data is shuffled.
        master: where executors are asked for, such as ``spark://host:7077``; empty: they are threads of the driver.
            Executors need the tables' folder at the same place as the driver, unless it is in an object store. Started
            by spark-submit, the session has the master, memory and jars that spark-submit was given.
        log_file: gets what Spark's JVM and its Python workers print; None leaves it on standard error. Started by
            spark-submit, the JVM runs already, and its output is spark-submit's.
        driver_memory_mib: heap of the one JVM.
    """

    jars: tuple[Path, ...]
    java_home: Path | None = None
    cores: int = 2
    driver_memory_mib: int = 1_024
    master: str = ""
    log_file: Path | None = None

    def __post_init__(self) -> None:
        """Refuse values on which Spark would fail later and less clearly."""
        if self.cores < 1 or self.driver_memory_mib < 512:  # noqa: PLR2004 - the message says it
            message = f"Spark needs at least 1 core and 512 MiB, not {self.cores} and {self.driver_memory_mib}"
            raise ConfigurationError(message)


@dataclass(frozen=True, slots=True)
class LoadRuleConfig:
    """The rules that choose candidates; the defaults are the published ones (Pulsar's).

    Attributes:
        split: limits of a bundle.
        shed: thresholds of the shedder.
        evaluation_interval_ms: log time between two evaluations (loadBalancerSheddingIntervalMinutes,
            loadBalancerSplitIntervalMinutes: 1). Each evaluation smooths every node's usage once.
        grace_period_ms: a bundle that changed its node within this time is not shed again
            (loadBalancerSheddingGracePeriodMinutes: 30).
        report_lifetime_ms: a node whose newest report is older does not count
            (loadBalancerBrokerLoadDataTTLInSeconds: 1800). If nodes report often, it can be much shorter.
    """

    split: SplitSettings = field(default_factory=SplitSettings)
    shed: ThresholdSettings = field(default_factory=ThresholdSettings)
    evaluation_interval_ms: int = 60_000
    grace_period_ms: int = 1_800_000
    report_lifetime_ms: int = 1_800_000

    def __post_init__(self) -> None:
        """Refuse intervals that would never or always apply."""
        if self.evaluation_interval_ms <= 0 or self.report_lifetime_ms <= 0 or self.grace_period_ms < 0:
            message = f"intervals of the load rules have to be positive (grace_period_ms may be 0), not {self}"
            raise ConfigurationError(message)


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """One pipeline process; a cluster has one.

    Attributes:
        cluster: whose topics are read.
        kafka: addresses and settings of the log's Kafka.
        tables_dir: the place of the Delta tables, a folder each.
        checkpoints_dir: the place of the checkpoints, which only the driver needs, and Spark's own clients open; None:
            ``_checkpoints`` beside the tables.
        spark: see :class:`SparkConfig`.
        rules: see :class:`LoadRuleConfig`.
        trigger_interval_ms: how often each stream looks for new records. A shorter interval gives fresher tables and
            costs more planning and more small files.
        max_records_per_batch: bounds the memory and the time of one batch when the pipeline has to catch up.
        bucket_count: into how many buckets tables of present rows (``bundle_load``, ``slots``, ``bundles``) are divided
            when they are created. A bucket is written whole, by one core, which holds its rows in memory: take 2 for a
            small fleet, and at least as many as there are cores for a great one.
        history_window_ms: the length of the windows of ``bundle_load_history``, in whole minutes. What is written
            keeps its length.
        maintenance_interval_ms: how often small files are joined and unused files are removed; first after a minute.
        keep_days: how many days of a table of history are kept, with today, by the table's name. All of a table that is
            not named are. ``decisions`` are kept: without the first of them nothing can be audited. Views lack what
            began in forgotten days of changes.
        restart_limit: how often in a row a failed stream is started again before the pipeline ends with an error.
    """

    cluster: ClusterConfig
    kafka: KafkaConfig
    tables_dir: StoragePath
    spark: SparkConfig
    rules: LoadRuleConfig = field(default_factory=LoadRuleConfig)
    trigger_interval_ms: int = 5_000
    max_records_per_batch: int = 20_000
    bucket_count: int = 16
    history_window_ms: int = 600_000
    maintenance_interval_ms: int = 3_600_000
    keep_days: Mapping[str, int] = field(default_factory=dict)
    restart_limit: int = 5
    checkpoints_dir: StoragePath | None = None

    def __post_init__(self) -> None:
        """Refuse settings with which nothing would be read."""
        numbers = (self.max_records_per_batch, self.maintenance_interval_ms, self.bucket_count)
        if min(numbers) <= 0 or self.trigger_interval_ms < 0 or self.restart_limit < 0:
            message = f"batch size, buckets and intervals have to be positive, restart_limit at least 0, not {self}"
            raise ConfigurationError(message)
        if self.history_window_ms <= 0 or self.history_window_ms % _MINUTE_MS:
            message = f"history_window_ms has to be whole minutes, at least one, not {self.history_window_ms} ms"
            raise ConfigurationError(message)
        histories = sorted({table.name for table in ALL_TABLES if table.is_history} - {DECISIONS_TABLE.name})
        for name, days in self.keep_days.items():
            if name not in histories or days < 1:
                message = f"{days} days of {name} cannot be kept: at least 1 day of one of {', '.join(histories)}"
                raise ConfigurationError(message)

    def checkpoint_dir(self, query_name: str) -> StoragePath:
        """The folder of a stream's checkpoint. Without it the stream does not know which records are in the table."""
        return (self.checkpoints_dir or self.tables_dir / "_checkpoints") / query_name
