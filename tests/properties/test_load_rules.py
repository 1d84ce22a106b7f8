"""What always holds for the load rules, whatever the load."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.core.bundles.load.averages import (
    LONG_TERM_SAMPLES,
    NO_LOAD,
    SHORT_TERM_SAMPLES,
    UNSEEN_BUNDLE,
    UNSEEN_LOAD,
    MessageLoad,
    TimeAverage,
    message_load,
    node_averages,
)
from controlplane.core.bundles.load.resource_usage import BYTES_PER_MIB, ResourceWeights, percent_usage, weighted_usage
from controlplane.core.bundles.reports import BundleLoad, LoadReport, ResourceUsage
from controlplane.core.bundles.splitting.limits import (
    MeasuredBundle,
    SplitLimit,
    SplitSettings,
    choose_splits,
    exceeded_limits,
)
from controlplane.errors import ConfigurationError, InvariantViolationError

figures = st.floats(0, 1e12)
loads = st.builds(MessageLoad, figures, figures, figures, figures)
whole_loads = st.builds(MessageLoad, *[st.integers(0, 10**6).map(float)] * 4)


def node_of(usages: Sequence[ResourceUsage]) -> LoadReport:
    """A report of a node without bundles; ``usages``: cpu, memory, direct memory, bandwidth in, bandwidth out."""
    cpu, memory, direct_memory, bandwidth_in, bandwidth_out = usages
    return LoadReport("n", 1, 0, cpu, memory, direct_memory, bandwidth_in, bandwidth_out, (), "", 0, (), ())


# Averages


@given(st.lists(loads, min_size=1, max_size=30), st.integers(1, 12))
def test_average_stays_within_its_samples(samples: list[MessageLoad], most: int) -> None:
    """A mean outside its samples' range would invent load; rounding alone may cross it."""
    average = TimeAverage(most, 0, UNSEEN_LOAD)
    for sample in samples:
        average = average.add(sample)
    for index in range(4):
        column = [sample[index] for sample in samples]
        slack = max(column) * 1e-12
        assert min(column) - slack <= average.load[index] <= max(column) + slack
    assert average.sample_count == min(len(samples), most)


@given(st.lists(whole_loads, min_size=1, max_size=10))
def test_average_is_the_mean_until_it_is_full(samples: list[MessageLoad]) -> None:
    """Up to its maximum of samples the running mean is the arithmetic mean, so the default leaves no trace."""
    average = UNSEEN_BUNDLE.short_term
    for sample in samples:
        average = average.add(sample)
    for index in range(4):
        exact = Fraction(sum(Fraction(sample[index]) for sample in samples), len(samples))
        assert average.load[index] == pytest.approx(float(exact), rel=1e-12)


@given(whole_loads, whole_loads, st.integers(1, 20))
def test_full_average_forgets_by_its_maximum(old: MessageLoad, new: MessageLoad, most: int) -> None:
    """Once full, a new sample weighs exactly one part in ``max_samples``: that is what bounds an average's memory."""
    average = TimeAverage(most, most, old).add(new)
    for index in range(4):
        expected = (Fraction(old[index]) * (most - 1) + Fraction(new[index])) / most
        assert average.load[index] == pytest.approx(float(expected), rel=1e-12)
    assert average.sample_count == most


def test_published_constants() -> None:
    """The numbers are the published ones: 10 and 1,000 samples, 50 messages and 50,000 bytes a second while unseen."""
    assert (SHORT_TERM_SAMPLES, LONG_TERM_SAMPLES) == (10, 1_000)
    assert MessageLoad(50_000.0, 50_000.0, 50.0, 50.0) == UNSEEN_LOAD
    assert UNSEEN_BUNDLE.short_term.max_samples == 10
    assert UNSEEN_BUNDLE.long_term.max_samples == 1_000


def test_impossible_average_is_refused() -> None:
    """A stored average with more samples than it may have is a defect of ours and must not be folded on."""
    with pytest.raises(InvariantViolationError, match="11 samples of at most 10"):
        TimeAverage(10, 11, NO_LOAD)


@given(st.dictionaries(st.sampled_from("abcdef"), whole_loads), st.lists(st.sampled_from("abcdef"), unique=True))
def test_broker_averages_are_sums(known: dict[str, MessageLoad], owned: list[str]) -> None:
    """A node's averages are its bundles' sums and nobody else's; an unseen bundle counts with the default."""
    averages = {bundle_id: UNSEEN_BUNDLE.add(load) for bundle_id, load in known.items()}
    sums = node_averages(owned, averages)
    for index in range(4):
        total = sum(known.get(bundle_id, UNSEEN_LOAD)[index] for bundle_id in owned)
        assert (sums.short_term[index], sums.long_term[index]) == (total, total)


def test_sample_of_a_report_names_each_figure() -> None:
    """The four figures of a report must not be mixed up on their way into an average."""
    bundle = BundleLoad("kv/0x00000000_0x40000000", 1.0, 2.0, 3.0, 4.0, 5, 6, 7, 8)
    assert message_load(bundle) == MessageLoad(3.0, 4.0, 1.0, 2.0)
    assert (message_load(bundle).throughput_bytes_per_s, message_load(bundle).message_rate_per_s) == (7.0, 3.0)


# Resource usage

resources = st.builds(ResourceUsage, st.floats(-1, 1e9), st.floats(-1, 1e9))


@given(st.floats(0, 1e9), st.floats(1e-3, 1e9))
def test_percent_is_a_32_bit_number_near_the_quotient(usage: float, limit: float) -> None:
    """The percentage is the quotient up to 32-bit rounding: the precision is the published rule's."""
    percent = percent_usage(ResourceUsage(usage, limit))
    assert percent == pytest.approx(usage / limit * 100, rel=5e-7, abs=1e-30)


def test_percent_keeps_32_bit_rounding() -> None:
    """1 of 3 is not the 64-bit third: a rule that computed in 64 bits would decide otherwise at the edge."""
    assert percent_usage(ResourceUsage(1, 3)) == 33.333335876464844


@given(st.floats(-1, 1e9), st.floats(-1, 0))
def test_unknown_limit_counts_as_idle(usage: float, limit: float) -> None:
    """A resource without a limit must not make its node look busy."""
    assert percent_usage(ResourceUsage(usage, limit)) == 0.0


@given(st.floats(0, 1e308), st.floats(0, 1e308))
@example(0.0, 1e-300)
@example(1.0, 1e-300)
@example(1e308, 1.0)
def test_percent_is_always_finite(usage: float, limit: float) -> None:
    """A usage that is not finite would stay in a node's smoothed usage for ever and blind the rule for all nodes."""
    assert 0 <= percent_usage(ResourceUsage(usage, limit)) < float("inf")


@given(st.tuples(*[resources] * 5), resources, st.builds(ResourceWeights, *[st.floats(0, 2)] * 4))
def test_weighted_usage_ignores_memory(
    usages: tuple[ResourceUsage, ...], other: ResourceUsage, weights: ResourceWeights
) -> None:
    """Heap memory never changes the weighted usage; every weighted resource is at most the maximum."""
    cpu, _, *rest = usages
    usage = weighted_usage(node_of(usages), weights)
    assert usage == weighted_usage(node_of((cpu, other, *rest)), weights)
    assert usage >= percent_usage(cpu) * weights.cpu / 100


def test_negative_weight_is_refused() -> None:
    """A negative weight would call the busiest node idle."""
    with pytest.raises(ConfigurationError, match="0 or greater"):
        ResourceWeights(cpu=-0.1)


# Splitting

measured_bundles = st.builds(
    MeasuredBundle,
    bundle_id=st.uuids().map(str),
    namespace=st.sampled_from(["a", "b"]),
    node_id=st.sampled_from(["n1", "n2"]),
    topic_count=st.integers(0, 6),
    session_count=st.integers(0, 6),
    message_rate_per_s=st.integers(0, 6).map(float),
    throughput_bytes_per_s=st.integers(0, 6).map(lambda mib: float(mib * BYTES_PER_MIB)),
)
split_settings = st.builds(
    SplitSettings, st.integers(0, 5), st.integers(-1, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 6)
)


@given(measured_bundles, split_settings)
def test_evidence_is_what_exceeds(bundle: MeasuredBundle, settings: SplitSettings) -> None:
    """Each named limit is strictly exceeded by the value named, each one not named is kept or does not apply."""
    figures_and_limits = {
        SplitLimit.TOPICS: (bundle.topic_count, settings.max_topics),
        SplitLimit.SESSIONS: (
            bundle.session_count,
            settings.max_sessions if settings.max_sessions > 0 else float("inf"),
        ),
        SplitLimit.MESSAGE_RATE: (bundle.message_rate_per_s, settings.max_message_rate_per_s),
        SplitLimit.BANDWIDTH: (bundle.throughput_bytes_per_s, settings.max_bandwidth_mib_per_s * BYTES_PER_MIB),
    }
    named = {each.limit: (each.measured, each.allowed) for each in exceeded_limits(bundle, settings)}
    splittable = bundle.topic_count >= 2
    assert named == {limit: pair for limit, pair in figures_and_limits.items() if splittable and pair[0] > pair[1]}


@given(
    st.lists(measured_bundles, max_size=12, unique_by=lambda each: each.bundle_id),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 6)),
    st.integers(0, 3),
    split_settings,
)
def test_splits_fill_each_namespace_in_order(
    bundles: list[MeasuredBundle], counts: dict[str, int], node_count: int, settings: SplitSettings
) -> None:
    """Exactly the first candidates of each namespace up to its cap are chosen, and none of an uncounted namespace."""
    chosen = choose_splits(bundles, counts, node_count, settings)
    if node_count < 2:
        assert chosen == ()
        return
    for namespace in ("a", "b"):
        wanted = [each for each in bundles if each.namespace == namespace and exceeded_limits(each, settings)]
        free = max(0, settings.max_bundles_per_namespace - counts[namespace]) if namespace in counts else 0
        assert [each.bundle for each in chosen if each.bundle.namespace == namespace] == wanted[:free]


def test_published_split_defaults() -> None:
    """Splitting starts at the published limits, each one strict."""
    edge = MeasuredBundle("b", "ns", "n", 1_000, 1_000, 30_000, 100 * BYTES_PER_MIB)
    settings = SplitSettings()
    assert exceeded_limits(edge, settings) == ()
    assert [each.limit for each in exceeded_limits(edge._replace(topic_count=1_001), settings)] == [SplitLimit.TOPICS]
    assert [each.limit for each in exceeded_limits(edge._replace(session_count=1_001), settings)] == [
        SplitLimit.SESSIONS
    ]
    assert settings.max_bundles_per_namespace == 128


def test_negative_split_limit_is_refused() -> None:
    """A negative limit would split everything."""
    with pytest.raises(ConfigurationError, match="MaxTopics is -1, allowed is 0 or greater"):
        SplitSettings(max_topics=-1)
