"""The balance policy's numbers (NaiveBalancePolicy): the counts at which a node has too much or too little."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BalanceNumbers:
    """The thresholds and limits of a tick.

    Attributes:
        threshold_percent: how far a count may differ from the mean (``registry.slot.balance.threshold``).
        max_leader_moves: leaderships that a stage moves (``registry.slot.leader.max.move``).
        max_follower_moves: followers that a stage moves (``registry.slot.follower.max.move``).
    """

    threshold_percent: int = 10
    max_leader_moves: int = 6
    max_follower_moves: int = 10

    def high(self, mean: int) -> int:
        """The count above which a node has too much."""
        return -(-mean * (100 + self.threshold_percent) // 100)

    def low(self, mean: int) -> int:
        """The count below which a node has too little."""
        return mean * (100 - self.threshold_percent) // 100


def ceiling_mean(total: int, count: int) -> int:
    """The mean, rounded up."""
    return -(-total // count)
