"""The pipeline's settings, and which of them are refused."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.config import ClusterConfig, KafkaConfig
from controlplane.errors import ConfigurationError
from streaming.config import LoadRuleConfig, PipelineConfig, SparkConfig

CLUSTER, KAFKA = ClusterConfig("c"), KafkaConfig("localhost:9092")


def test_published_intervals_are_the_defaults() -> None:
    """One minute between evaluations, 30 minutes of rest and of trust in a report: the published values."""
    rules = LoadRuleConfig()
    assert (rules.evaluation_interval_ms, rules.grace_period_ms, rules.report_lifetime_ms) == (
        60_000,
        1_800_000,
        1_800_000,
    )


@pytest.mark.parametrize("wrong", [{"evaluation_interval_ms": 0}, {"grace_period_ms": -1}, {"report_lifetime_ms": 0}])
def test_impossible_intervals_are_refused(wrong: dict[str, Any]) -> None:
    """An interval of nothing would evaluate never or always."""
    with pytest.raises(ConfigurationError, match="intervals of the load rules"):
        LoadRuleConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"max_records_per_batch": 0}, {"trigger_interval_ms": -1}, {"restart_limit": -1}])
def test_impossible_batches_are_refused(wrong: dict[str, Any]) -> None:
    """A batch of nothing would never get on."""
    with pytest.raises(ConfigurationError, match="positive"):
        PipelineConfig(CLUSTER, KAFKA, Path("tables"), SparkConfig(jars=()), **wrong)


@pytest.mark.parametrize("wrong", [0, -60_000, 90_000])
def test_parts_of_minutes_are_refused(wrong: int) -> None:
    """A window of the history of loads begins with a minute of the clock."""
    with pytest.raises(ConfigurationError, match="history_window_ms has to be whole minutes"):
        PipelineConfig(CLUSTER, KAFKA, Path("tables"), SparkConfig(jars=()), history_window_ms=wrong)


def test_too_little_memory_is_refused() -> None:
    """Spark fails with less than its own reserve, and says it in other words."""
    with pytest.raises(ConfigurationError, match="512 MiB"):
        SparkConfig(jars=(), driver_memory_mib=100)
