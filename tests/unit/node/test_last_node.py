"""Whether anybody could take over what a draining node holds: what its agent waits for before it leaves."""

from controlplane.config import ClusterConfig
from controlplane.node.holdings import HoldingBook
from controlplane.topic_reading.table_follower import TableFollower
from tests.helpers.published_world import PublishedWorld


def test_excluded_node_takes_nothing_over() -> None:
    """An agent that waited for it would wait in vain, and keep its process from ending."""
    world = PublishedWorld(ClusterConfig("test"))
    world.admit("n1", "n2")
    book, follower = HoldingBook("n1"), TableFollower(world.reader())

    def is_the_last_one() -> bool:
        for table in follower.step(0).tables:
            book.follow(table, 1)
        return book.is_the_last_one

    world.ask("drain_node", node="n1")
    assert not is_the_last_one()
    world.ask("exclude_node", node="n2")
    assert is_the_last_one()
    world.ask("include_node", node="n2")
    assert not is_the_last_one()
