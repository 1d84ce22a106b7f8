"""How long a node waits for its service when bundles move, and how much it asks of it at once."""

from dataclasses import dataclass, fields

from controlplane.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class HandoffSettings:
    """Settings of the calls for slots and bundles, and of the requests that a release waits for.

    The leader waits for a release for some ten seconds longer than a node can be without contact to the log, and then
    goes on whatever the node says. If the sum of the first two limits is longer than that, the next owner begins while
    this node may still be closing, and only fencing tokens tell the two apart. The leader also gives a bundle to
    another node if it is not opened within the policy's ``handoff_limit_ms``, whatever ``open_limit_ms`` is.

    Attributes:
        accepted_limit_ms: longest time for which a release waits for requests that were accepted before it. Then they
            are voided: their right to serve has ended.
        release_limit_ms: longest time for which ``on_slots_releasing`` or ``on_bundle_releasing`` is waited for. Then
            the node reports that it has released the slots or the bundle.
        open_limit_ms: time after which any other call counts as hung, so that other slots and bundles need not wait for
            it. Its own wait until it returns.
        calls_at_once: greatest number of bundles for which calls are made at the same time, without those that hang.
            For slots it is one.
        hung_calls_at_most: number of hung calls for bundles, each with a thread of its own, from which on no further
            call for a bundle is made; likewise for slots. What this node has to release is then released without its
            service.
        end_limit_ms: longest time for which an agent that ends waits for its last calls.
    """

    accepted_limit_ms: int = 2_000
    release_limit_ms: int = 5_000
    open_limit_ms: int = 10_000
    calls_at_once: int = 16
    hung_calls_at_most: int = 64
    end_limit_ms: int = 10_000

    @property
    def shortest_limit_ms(self) -> int:
        """No call that begins and no request is given up earlier than after this time."""
        return min(self.accepted_limit_ms, self.release_limit_ms, self.open_limit_ms)

    def __post_init__(self) -> None:
        """Refuse settings with which no call would be made.

        Raises:
            ConfigurationError: a setting is not positive.
        """
        for each in fields(self):
            value = getattr(self, each.name)
            if value <= 0:
                raise ConfigurationError(f"handoff setting {each.name} is {value}, expected 1 or more")
