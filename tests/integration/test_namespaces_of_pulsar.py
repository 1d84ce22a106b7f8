"""Namespaces of 1 to 128 bundles in one live cluster, against recorded answers of Pulsar: bounds, and routes of topics.

A recorded topic is routed by its full name, which Pulsar hashes, in every namespace. The recorded hash says which
bundle Pulsar would name there, and where the answer itself is recorded for that number of bundles, it is compared, too.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry

from controlplane.bootstrap.members import routing_client
from controlplane.codec.inputs import encode_input
from controlplane.config import INTENTS, ROUTING_TABLE
from controlplane.core.intents.intent import Intent, IntentKind
from controlplane.core.routing.replica import RoutingTable
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.embedded.valkey import EmbeddedValkey
from controlplane.resources import resource_path
from controlplane.routing import RoutingClient
from tests.conformance.recorded import cases
from tests.helpers.java_reader import JavaReader
from tests.helpers.real_cluster import RealCluster
from tests.vectors.hash_cases import key_with_checksum

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

VECTORS: Final = Path(__file__).parents[1] / "golden" / "pulsar" / "vectors.jsonl.gz"
COUNTS: Final = range(1, 129)
LAST_HASH: Final = 0xFFFFFFFF
NO_BUNDLE: Final = "error:IndexOutOfBoundsException"
TOPICS_OF: Final = "persistent://t/n/"
JAVA_WITHIN_S: Final = 60


def recorded(operation: str) -> list[dict[str, Any]]:
    """The cases of an operation that have an answer."""
    return [case for case in cases(VECTORS) if case["op"] == operation and "out" in case]


def bounds_of(count: int) -> list[int]:
    """The bounds of a namespace with so many bundles, by the rule of the recorded ``create_bundles``."""
    return [*range(0, count * (2**32 // count), 2**32 // count), LAST_HASH]


def names_of(count: int) -> list[str]:
    """The names of its bundles' ranges."""
    return [f"0x{lower:08x}_0x{upper:08x}" for lower, upper in pairwise(bounds_of(count))]


def namespace_of(count: int) -> str:
    """The live namespace with so many bundles. Its name has one part, two or three."""
    return ("n{}", "tenant/n{}", "tenant/cluster/n{}")[count % 3].format(count)


def whole_namespaces(operation: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The recorded cases about a namespace that was never split, with its number of bundles."""
    for case in recorded(operation):
        count = len(case["in"]["boundaries"]) - 1
        if [int(bound, 16) for bound in case["in"]["boundaries"]] == bounds_of(count):
            yield count, case


def topic_with_hash(hashed: int) -> str:
    """A topic's full name with this hash."""
    return TOPICS_OF + key_with_checksum(lambda data: zlib.crc32(TOPICS_OF.encode() + data), hashed)


def recorded_hashes() -> dict[str, int]:
    """The hash of each recorded topic, and topics with the recorded hashes."""
    found = {topic: hashed for case in recorded("find_bundle") for topic, hashed, _ in case["out"]}
    asked = {hashed for _, case in whole_namespaces("bundle_for_hash") for hashed in case["in"]["hashes"]}
    return found | {topic_with_hash(hashed): hashed for hashed in sorted(asked)}


def recorded_bundles() -> dict[tuple[int, str], str]:
    """The range's name by number of bundles and topic. The last hash has none in Pulsar, and the last one here."""
    found = {(count, topic): name for count, case in whole_namespaces("find_bundle") for topic, _, name in case["out"]}
    for count, case in whole_namespaces("bundle_for_hash"):
        for hashed, name in zip(case["in"]["hashes"], case["out"], strict=True):
            assert (name == NO_BUNDLE) == (hashed == LAST_HASH)
            found[count, topic_with_hash(hashed)] = names_of(count)[-1] if name == NO_BUNDLE else name
    return found


def expected_bundles(hashes: Mapping[str, int]) -> dict[tuple[int, str], str]:
    """The range's name for every number of bundles and every topic."""
    expected = {}
    for count in COUNTS:
        bounds, names = bounds_of(count), names_of(count)
        for topic, hashed in hashes.items():
            expected[count, topic] = names[min(bisect_right(bounds, hashed) - 1, count - 1)]
    return expected


@pytest.fixture
def cluster(
    kafka_broker: EmbeddedKafka, valkey_server: EmbeddedValkey, cluster_name: str, tmp_path: Path
) -> Iterator[RealCluster]:
    """A controller and three nodes, which are not fenced while the machine is busy with many keys."""
    with RealCluster(cluster_name, kafka_broker.bootstrap_servers, valkey_server.redis_url, tmp_path) as running:
        running.start_controller("c1", "--policy", "silence_limit_ms=20000")
        running.join("n1", "n2", "n3")
        running.wait_until(lambda: running.slot_leaders() == {"n1", "n2", "n3"}, "the first table")
        yield running


def create_namespaces(cluster: RealCluster, client: RoutingClient) -> RoutingTable:
    """One namespace of each count."""
    kind = IntentKind.CREATE_NAMESPACE.value
    for count in COUNTS:
        intent = Intent(f"create-{count}", kind, "tester", {"namespace": namespace_of(count), "bundles": str(count)})
        cluster.send(INTENTS, intent.intent_id, encode_input(intent))
    wanted = {namespace_of(count) for count in COUNTS}
    return client.wait_for(lambda table: wanted <= table.namespaces.keys(), timeout_ms=60_000)


def test_every_topic_is_routed_to_the_bundle_that_pulsar_names(cluster: RealCluster, tmp_path: Path) -> None:
    """By the client, and by the reader in Java, in namespaces of every count."""
    hashes = recorded_hashes()
    assert LAST_HASH in hashes.values()
    expected = expected_bundles(hashes)
    answers = recorded_bundles()
    assert answers == {place: expected[place] for place in answers}
    with routing_client(cluster.cluster.name, cluster.kafka.bootstrap_servers, registry=CollectorRegistry()) as client:
        table = create_namespaces(cluster, client)
        routes = {place: client.route_bundle(namespace_of(place[0]), place[1]) for place in expected}
    wanted = [f"{namespace_of(count)}/{name}" for (count, _), name in expected.items()]
    assert [route.bundle_id for route in routes.values()] == wanted

    for count in COUNTS:
        rows = [each for each in table.bundles.values() if each.namespace == namespace_of(count)]
        assert sorted(each.bundle_id for each in rows) == [f"{namespace_of(count)}/{each}" for each in names_of(count)]
    for case in recorded("create_bundles"):
        assert [f"0x{bound:08x}" for bound in bounds_of(case["in"]["n"])] == case["out"]

    folder = tmp_path / "classes"
    folder.mkdir()
    place = [cluster.kafka.bootstrap_servers, cluster.cluster.topic(ROUTING_TABLE), str(resource_path("schemas"))]
    given = "".join(f"{namespace_of(count)}\t{topic}\n" for count, topic in expected)
    done = JavaReader(folder).run(
        "RoutingTableReader", [*place, str(table.epoch), str(JAVA_WITHIN_S), "-"], JAVA_WITHIN_S + 60, given
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    theirs = [line for line in done.stdout.splitlines() if line.startswith("bundle ")]
    assert theirs == [f"bundle {route.bundle_id} {route.node_id} " for route in routes.values()]
    cluster.assert_log_is_whole()
