"""The bounds that an owner finds for a bundle that it has to split."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from controlplane.core.bundles.bundle import equal_bundles
from controlplane.core.bundles.ranges import bundle_hash
from controlplane.node import TopicLoad
from controlplane.node.split_bounds import split_bounds

WHOLE = equal_bundles("kv", 1)[0]
TOPICS = [TopicLoad(f"topic-{number}", message_rate_in_per_s=30_000.0) for number in range(4)]
HASHES = sorted(bundle_hash(each.topic) for each in TOPICS)


def test_pulsars_algorithms_find_bounds_between_topics() -> None:
    """By their number, by their load, or without looking at them."""
    (middle,) = split_bounds(replace(WHOLE, split_algorithm="topic_count_equally_divide"), TOPICS)
    assert HASHES[1] <= middle < HASHES[2]
    bounds = split_bounds(replace(WHOLE, split_algorithm="flow_or_qps_equally_divide"), TOPICS)
    assert all(low < bound <= high for low, bound, high in zip(HASHES, bounds, HASHES[1:], strict=False))
    assert len(bounds) == 3
    assert split_bounds(replace(WHOLE, split_algorithm="range_equally_divide"), ()) == (0x7FFFFFFF,)


@pytest.mark.parametrize(
    ("algorithm", "reason"),
    [
        ("topic_count_equally_divide", "0 known topics"),
        ("specified_positions_divide", "none is given"),
        ("range_equally_divide", "would leave a part empty"),
    ],
)
def test_a_bundle_without_usable_bounds_stays_whole_and_the_log_says_why(algorithm: str, reason: str) -> None:
    """Controllers refuse a heartbeat with bounds that are none."""
    with capture_logs() as lines:
        assert split_bounds(replace(WHOLE, upper=1, split_algorithm=algorithm), ()) == ()
    assert reason in lines[0]["reason"]


def test_an_algorithm_that_this_version_does_not_know_finds_none() -> None:
    """A newer leader may know it; the log says which ones are known."""
    with capture_logs() as lines:
        assert split_bounds(replace(WHOLE, split_algorithm="newer"), TOPICS) == ()
    assert "range_equally_divide" in lines[0]["known"]
