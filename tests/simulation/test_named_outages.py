"""All brokers go away under one leader and one contender, at the worst moments, and come back."""

from collections.abc import Callable

import pytest

from tests.simulation.mutants.outage_scenes import (
    let_kafka_go,
    let_kafka_go_and_leader_read_late,
    let_kafka_go_while_leader_asks_for_partitions,
    let_kafka_go_while_leader_reads_back,
    let_kafka_go_while_leader_takes_partitions_in,
    outlast,
)
from tests.simulation.script import Script

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("away_ms", [5_000, 10_000, 30_000])
@pytest.mark.parametrize(
    "let_go",
    [
        let_kafka_go,
        let_kafka_go_while_leader_asks_for_partitions,
        let_kafka_go_while_leader_takes_partitions_in,
        let_kafka_go_while_leader_reads_back,
        let_kafka_go_and_leader_read_late,
    ],
)
def test_leader_leads_on_after_all_brokers_were_away(let_go: Callable[[Script], None], away_ms: int) -> None:
    """No other controller could have led meanwhile, and the leader decides again within two seconds."""
    outlast(let_go, away_ms)
