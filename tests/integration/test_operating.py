"""Every operation from the command line, on a running cluster: the how-to page as it stands there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.readme import ROOT
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = ROOT / "docs" / "how-to" / "operate-the-slot-table.md"
NODES = ("n1", "n2", "n3", "n4")
NOT_ON_THE_PAGE = {
    IntentKind.CREATE_NAMESPACE.value,
    IntentKind.DELETE_NAMESPACE.value,
    IntentKind.TRANSFER_BUNDLES.value,
    IntentKind.UNLOAD_BUNDLES.value,
    IntentKind.SPLIT_BUNDLES.value,
    IntentKind.SET_TENANT.value,
    IntentKind.DELETE_TENANT.value,
    IntentKind.OVERRIDE_SELF_PRESERVATION.value,
    IntentKind.RAISE_FEATURE_LEVEL.value,
    IntentKind.RESIGN_LEADER.value,
    IntentKind.TAKE_SNAPSHOT.value,
}
"""What an operator can ask for that is not about the slot table."""


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """One controller, and four nodes that share the slots."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as running:
        running.start_controller("c1")
        running.join(*NODES)
        running.wait_until(lambda: running.slot_leaders() == set(NODES), "the first table")
        yield running


def test_page_works_as_it_stands(cluster: RealCluster) -> None:
    """Each command succeeds, in the order of the page, and between them they use every operation there is."""
    cluster.run_page(PAGE)
    answers = [event for each in cluster.decisions() for event in each.events if isinstance(event, IntentAnswered)]
    assert {answer.outcome for answer in answers} == {IntentOutcome.DONE}
    assert {answer.kind for answer in answers} == {kind.value for kind in IntentKind} - NOT_ON_THE_PAGE
    table = cluster.tables()[-1]
    assert (len(table.slots), table.settings.replica_count, table.settings.silence_limit_ms) == (512, 3, 2_000)
    assert {len(slot.replicas) for slot in table.slots} == {3}
    assert cluster.fenced() == []
    cluster.assert_log_is_whole()
