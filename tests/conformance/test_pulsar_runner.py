"""The runner of recorded answers: inputs that no recorded case holds."""

import pytest

from controlplane.core.bundles.ranges import bundle_hash
from tests.conformance.pulsar.ranges import find_bundle
from tests.conformance.pulsar.shedding import transfer_shed

WHOLE = ["0x00000000", "0xffffffff"]
REFUSED = {"error": "IllegalArgumentException"}


@pytest.mark.parametrize("topic", ["t/n/orders", "PERSISTENT://t/n/orders", "persistent://t/n/orders"])
def test_topic_is_hashed_by_its_full_name(topic: str) -> None:
    """Whichever form of it was given."""
    expected = [topic, bundle_hash("persistent://t/n/orders"), "0x00000000_0xffffffff"]
    assert find_bundle({"boundaries": WHOLE, "topics": [topic]}) == [expected]


@pytest.mark.parametrize(
    "topic", ["orders", "t/orders", "persistent://t/n/ ", "persistent://t/n/", "t/n/\t", "https://t/n/x"]
)
def test_other_topics_are_refused(topic: str) -> None:
    """A short name of one part is of the default namespace, which is another one."""
    assert find_bundle({"boundaries": WHOLE, "topics": [topic]}) == REFUSED


def test_broker_that_unloaded_may_have_no_stored_load() -> None:
    """It rests all the same."""
    given = {
        "ticks": [{"brokers": [{"name": "b1", "age_ms": 5, "no_load": True}], "recent_brokers": {"b1": 3}}],
    }
    found = transfer_shed(given)
    assert len(found["calls"]) == 1
    assert found["calls"][0]["decisions"] == []
