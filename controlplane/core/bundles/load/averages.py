"""Short- and long-term averages of a bundle's load (Pulsar's TimeAverageMessageData, BundleData).

Each load report is a sample. An average is the arithmetic mean of the first ``max_samples`` samples, and from then on
an exponential moving average.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from controlplane.errors import InvariantViolationError

SHORT_TERM_SAMPLES: Final = 10
LONG_TERM_SAMPLES: Final = 1_000
"""Pulsar's NUM_SHORT_SAMPLES and NUM_LONG_SAMPLES."""

UNSEEN_MESSAGE_RATE_PER_S: Final = 50.0
UNSEEN_THROUGHPUT_BYTES_PER_S: Final = 50_000.0
"""Assumed load, in each direction, of a bundle without a report."""


class MessageLoad(NamedTuple):
    """Traffic in both directions: a sample, an average or a sum."""

    throughput_in_bytes_per_s: float
    throughput_out_bytes_per_s: float
    message_rate_in_per_s: float
    message_rate_out_per_s: float

    @property
    def throughput_bytes_per_s(self) -> float:
        """In plus out."""
        return self.throughput_in_bytes_per_s + self.throughput_out_bytes_per_s

    @property
    def message_rate_per_s(self) -> float:
        """In plus out."""
        return self.message_rate_in_per_s + self.message_rate_out_per_s

    def plus(self, other: "MessageLoad") -> "MessageLoad":
        """The sum, field by field."""
        bytes_in, bytes_out, rate_in, rate_out = self
        return MessageLoad(bytes_in + other[0], bytes_out + other[1], rate_in + other[2], rate_out + other[3])


NO_LOAD: Final = MessageLoad(0.0, 0.0, 0.0, 0.0)
UNSEEN_LOAD: Final = MessageLoad(
    UNSEEN_THROUGHPUT_BYTES_PER_S, UNSEEN_THROUGHPUT_BYTES_PER_S, UNSEEN_MESSAGE_RATE_PER_S, UNSEEN_MESSAGE_RATE_PER_S
)


class MessageLoadSource(Protocol):
    """An object with the four figures, for example :class:`controlplane.core.bundles.reports.BundleLoad`."""

    @property
    def throughput_in_bytes_per_s(self) -> float:
        """Bytes per second towards the bundle."""
        ...

    @property
    def throughput_out_bytes_per_s(self) -> float:
        """Bytes per second from the bundle."""
        ...

    @property
    def message_rate_in_per_s(self) -> float:
        """Messages per second towards the bundle."""
        ...

    @property
    def message_rate_out_per_s(self) -> float:
        """Messages per second from the bundle."""
        ...


def message_load(source: MessageLoadSource) -> MessageLoad:
    """The four figures of a bundle's report."""
    return MessageLoad(
        source.throughput_in_bytes_per_s,
        source.throughput_out_bytes_per_s,
        source.message_rate_in_per_s,
        source.message_rate_out_per_s,
    )


@dataclass(frozen=True, slots=True)
class TimeAverage:
    """A running mean.

    Attributes:
        max_samples: from this number on, a new sample weighs 1 / max_samples.
        sample_count: samples that count, at most ``max_samples``; 0 while ``load`` is a default.
        load: the mean.
    """

    max_samples: int
    sample_count: int
    load: MessageLoad

    def __post_init__(self) -> None:
        """Refuse counts that adding samples cannot produce."""
        if not 0 <= self.sample_count <= self.max_samples or self.max_samples < 1:
            message = f"an average cannot have {self.sample_count} samples of at most {self.max_samples}"
            raise InvariantViolationError(message)

    def add(self, sample: MessageLoad) -> "TimeAverage":
        """The mean with one more sample; the first one replaces the default.

        ``n = min(n + 1, max); mean = ((n - 1) * mean + sample) / n`` for each field, in this order of operations.
        :func:`controlplane.core.bundles.load.sample_fold.fold_samples` computes the same over columns, to the bit.
        """
        count = min(self.sample_count + 1, self.max_samples)
        before = count - 1
        old_in, old_out, old_rate_in, old_rate_out = self.load
        new_in, new_out, new_rate_in, new_rate_out = sample
        mean = MessageLoad(
            (before * old_in + new_in) / count,
            (before * old_out + new_out) / count,
            (before * old_rate_in + new_rate_in) / count,
            (before * old_rate_out + new_rate_out) / count,
        )
        return TimeAverage(self.max_samples, count, mean)


@dataclass(frozen=True, slots=True)
class BundleAverages:
    """The short- and long-term averages of a bundle (Pulsar's BundleData)."""

    short_term: TimeAverage
    long_term: TimeAverage

    def add(self, sample: MessageLoad) -> "BundleAverages":
        """Both averages with one more report."""
        return BundleAverages(self.short_term.add(sample), self.long_term.add(sample))


UNSEEN_BUNDLE: Final = BundleAverages(
    TimeAverage(SHORT_TERM_SAMPLES, 0, UNSEEN_LOAD), TimeAverage(LONG_TERM_SAMPLES, 0, UNSEEN_LOAD)
)


class NodeAverages(NamedTuple):
    """The sums of the averages of a node's bundles (Pulsar's TimeAverageBrokerData; a broker there is a node here)."""

    short_term: MessageLoad
    long_term: MessageLoad


def node_averages(bundle_ids: Iterable[str], averages: Mapping[str, BundleAverages]) -> NodeAverages:
    """The sums of the averages of a node's bundles, added in the given order.

    A bundle without averages counts as :data:`UNSEEN_BUNDLE`. Floating-point sums depend on the order.
    """
    short_term = long_term = NO_LOAD
    for bundle_id in bundle_ids:
        bundle = averages.get(bundle_id, UNSEEN_BUNDLE)
        short_term = short_term.plus(bundle.short_term.load)
        long_term = long_term.plus(bundle.long_term.load)
    return NodeAverages(short_term, long_term)


def full_averages(load: MessageLoad) -> BundleAverages:
    """Averages that start at ``load`` and weigh it like a whole history (Pulsar's use of a bundle's ResourceQuota)."""
    return BundleAverages(
        TimeAverage(SHORT_TERM_SAMPLES, SHORT_TERM_SAMPLES, load),
        TimeAverage(LONG_TERM_SAMPLES, LONG_TERM_SAMPLES, load),
    )
