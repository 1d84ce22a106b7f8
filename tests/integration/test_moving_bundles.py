"""Bundles that operators move and split, between real nodes: the how-to page as it stands there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.core.bundles.events import BundleOrdersEnded, BundlesAssigned, BundleSplit, NamespaceDeleted
from controlplane.core.bundles.orders import OrderOutcome
from controlplane.core.bundles.ownership_state import OwnershipState
from controlplane.core.intents.events import IntentAnswered, IntentOutcome
from controlplane.core.intents.intent import IntentKind
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from tests.helpers.node_processes import NodeProcesses
from tests.helpers.readme import ROOT
from tests.helpers.real_cluster import RealCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = ROOT / "docs" / "how-to" / "move-and-split-bundles.md"
NODES = ("n1", "n2", "n3")
ON_THE_PAGE = {
    IntentKind.CREATE_NAMESPACE,
    IntentKind.TRANSFER_BUNDLES,
    IntentKind.UNLOAD_BUNDLES,
    IntentKind.SPLIT_BUNDLES,
    IntentKind.CHANGE_POLICY,
    IntentKind.DELETE_NAMESPACE,
}


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """One controller, and three nodes that hand bundles off."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as running:
        running.start_controller("c1")
        with NodeProcesses(running) as nodes:
            for name in NODES:
                nodes.start(name)
            running.wait_until(lambda: running.slot_leaders() == set(NODES), "the first table")
            yield running


def test_page_works_as_it_stands(cluster: RealCluster) -> None:
    """Each command succeeds, in the order of the page, and every order that it waits for is carried out by handoff."""
    cluster.run_page(PAGE)
    events = [event for each in cluster.decisions() for event in each.events]
    answers = [event for event in events if isinstance(event, IntentAnswered)]
    assert {(answer.kind, answer.outcome) for answer in answers} == {
        (kind.value, IntentOutcome.DONE) for kind in ON_THE_PAGE
    }
    ended = [each for event in events if isinstance(event, BundleOrdersEnded) for each in event.ended]
    assert [each for each in ended if each.outcome is not OrderOutcome.DONE] == []
    rows = [row for event in events if isinstance(event, BundlesAssigned) for row in event.bundles]
    assert {row.state for row in rows} >= {
        OwnershipState.RELEASING,
        OwnershipState.ASSIGNING,
        OwnershipState.OWNED,
        OwnershipState.SPLITTING,
    }
    assert [len(event.children) for event in events if isinstance(event, BundleSplit)] == [2, 4, 3]
    (deleted,) = [event for event in events if isinstance(event, NamespaceDeleted)]
    assert len(deleted.bundle_ids) == 2 + 4 + 3 + 1
    assert cluster.tables()[-1].bundles == {}
    assert cluster.fenced() == []
    cluster.assert_log_is_whole()
