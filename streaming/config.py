"""Settings of the pipeline; they refuse to exist when they contradict themselves."""

from dataclasses import dataclass, field
from pathlib import Path

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.core.bundles.load.shed_rule import ShedSettings
from controlplane.core.bundles.load.split_rule import SplitSettings
from controlplane.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class SparkConfig:
    """One local Spark session.

    Attributes:
        jars: the connector's and Delta's jars, which pyspark does not carry.
        java_home: the Java to run on; None leaves it to JAVA_HOME and the PATH.
        cores: how many tasks run at once, and into how many parts data is shuffled.
        driver_memory_mib: heap of the one JVM.
        java_options: for that JVM. The default compiles quickly rather than well and collects in one thread: with
            batches of seconds most of the work is planning, and the machine has others to serve.
    """

    jars: tuple[Path, ...]
    java_home: Path | None = None
    cores: int = 2
    driver_memory_mib: int = 1_024
    java_options: str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

    def __post_init__(self) -> None:
        """Refuse what Spark would fail on later and less clearly."""
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
            (loadBalancerBrokerLoadDataTTLInSeconds: 1800). Nodes that report often allow far less.
    """

    split: SplitSettings = field(default_factory=SplitSettings)
    shed: ShedSettings = field(default_factory=ShedSettings)
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
        kafka: where the log is.
        warehouse_dir: the folder of the Delta tables, one folder each, and of the checkpoints below ``_checkpoints``.
        spark: see :class:`SparkConfig`.
        rules: see :class:`LoadRuleConfig`.
        trigger_interval_ms: how often each stream looks for new records. Shorter is fresher and costs more planning
            and more small files.
        max_records_per_batch: bounds the memory and the time of one batch when the pipeline has to catch up.
        maintenance_interval_ms: how often small files are joined and files that nobody reads are removed.
        restart_limit: how often a failed stream is started again in a row before the pipeline gives up.
    """

    cluster: ClusterConfig
    kafka: KafkaConfig
    warehouse_dir: Path
    spark: SparkConfig
    rules: LoadRuleConfig = field(default_factory=LoadRuleConfig)
    trigger_interval_ms: int = 5_000
    max_records_per_batch: int = 20_000
    maintenance_interval_ms: int = 3_600_000
    restart_limit: int = 5

    def __post_init__(self) -> None:
        """Refuse settings under which nothing would be read."""
        numbers = (self.max_records_per_batch, self.maintenance_interval_ms)
        if min(numbers) <= 0 or self.trigger_interval_ms < 0 or self.restart_limit < 0:
            message = f"batch size and intervals have to be positive, restart_limit at least 0, not {self}"
            raise ConfigurationError(message)

    def checkpoint_dir(self, query_name: str) -> Path:
        """Where a stream keeps how far it has come; lost with it is the knowledge of what the tables hold."""
        return self.warehouse_dir / "_checkpoints" / query_name
