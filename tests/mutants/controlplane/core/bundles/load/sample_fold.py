"""Bugs in ``controlplane/core/bundles/load/sample_fold.py``: columns fold otherwise than single samples."""

from typing import Final

from tests.mutants.mutant import Bug

_FOLD: Final = ("properties/test_sample_fold.py::test_columns_fold_as_single_samples_do",)

BUGS: Final = (
    Bug(
        "samples of columns fold in the order of their partitions",
        "np.lexsort((partition, latest, bundle))",
        "np.lexsort((partition, bundle))",
        tests=_FOLD,
    ),
    Bug(
        "samples of columns fold in the order of their times also within a partition",
        "np.maximum.accumulate(_leading(samples.append_time_ms[by_pair], opens))",
        "_leading(samples.append_time_ms[by_pair], opens)",
        tests=_FOLD,
    ),
    Bug(
        "an offset that was folded before folds again in columns",
        "opens | (leading > before)",
        "opens | (leading >= before)",
        tests=_FOLD,
    ),
    Bug(
        "what was folded before stands among a partition's samples in columns",
        "np.lexsort((offset, is_sample, partition, bundle))",
        "np.lexsort((offset, partition, bundle))",
        tests=_FOLD,
    ),
    Bug(
        "the offsets of one bundle hide those of the next one in columns",
        "return np.cumsum(opens) * (len(values) + 1) + rank",
        "return rank",
        tests=_FOLD,
    ),
    Bug(
        "an average of columns weighs its history with one sample too many",
        "((count - 1) * mean[:, of]",
        "(count * mean[:, of]",
        tests=_FOLD,
    ),
    Bug(
        "an average of columns never forgets",
        "np.minimum(sample_count[of] + 1, max_samples)",
        "sample_count[of] + 1",
        tests=("properties/test_sample_fold.py::test_averages_go_on_beyond_their_greatest_number_of_samples",),
    ),
    Bug(
        "a bundle of columns moves with its first report",
        "(former != NONE) & (former != reporter)",
        "former != reporter",
        tests=_FOLD,
    ),
    Bug(
        "a bundle of columns is said to have moved at its first move",
        "np.append(bundle[moves][1:] != bundle[moves][:-1], True)",
        "np.append(True, bundle[moves][1:] != bundle[moves][:-1])",
        tests=_FOLD,
    ),
    Bug(
        "the first report of a bundle of columns is its newest one",
        "appears = first[former[first] == NONE]",
        "appears = last[former[first] == NONE]",
        tests=_FOLD,
    ),
    Bug(
        "the greatest offset of a partition is forgotten in columns",
        "order = np.lexsort((offset, partition, bundle))",
        "order = np.lexsort((-offset, partition, bundle))",
        tests=_FOLD,
    ),
    Bug(
        "samples of columns may be infinite",
        "(load <= GREATEST_AMOUNT)",
        "(load <= np.inf)",
        tests=("properties/test_sample_fold.py::test_samples_are_plausible_as_single_ones_are",),
    ),
)
