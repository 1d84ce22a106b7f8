"""Which records readers do not see yet: a broker answers a commit before it has written its end marker."""

from collections.abc import Sequence

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.helpers.polling import poll_until


def await_end_markers(bootstrap_servers: str, places: Sequence[tuple[str, int]]) -> None:
    """Wait until no ended transaction hides records of these partitions. No transaction may be open.

    Args:
        bootstrap_servers: of the broker.
        places: topic, with the cluster's prefix, and partition.
    """
    poll_until(lambda: _all_visible(bootstrap_servers, places))


def hidden_records(bootstrap_servers: str, place: tuple[str, int]) -> int:
    """How many offsets of a partition are acknowledged and behind its last stable offset.

    Raises:
        KafkaException: no broker that leads it answers.
    """
    visible, written = _ends(bootstrap_servers, [place])
    return written[0] - visible[0]


def _all_visible(bootstrap_servers: str, places: Sequence[tuple[str, int]]) -> bool:
    try:
        visible, written = _ends(bootstrap_servers, places)
    except KafkaException:
        return False
    return visible == written


def _ends(bootstrap_servers: str, places: Sequence[tuple[str, int]]) -> tuple[list[int], list[int]]:
    """Last stable offsets and high watermarks."""
    # A client of its own each time: one from before an outage may not know the partitions' leaders any more.
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    latest = {TopicPartition(*place): OffsetSpec.latest() for place in places}  # type: ignore[no-untyped-call]  # the library's gap
    visible, written = (
        [answer.result(10).offset for answer in admin.list_offsets(latest, isolation_level=level).values()]
        for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    )
    return visible, written
