"""Bugs in ``controlplane/adapters/kafka_reader.py``, which simulated readers do not run."""

from typing import Final

from tests.mutants.mutant import Bug

_CONTRACT: Final = "contracts/test_log_kafka.py::TestKafkaReader"

BUGS: Final = (
    Bug(
        "the high watermark is taken for the end",
        "ended[place] = PartitionEnd(offset, mark)",
        "ended[place] = PartitionEnd(mark, mark)",
        tests=(f"{_CONTRACT}::test_an_end_names_its_offset_which_an_open_transaction_holds_back",),
    ),
    Bug(
        "the end is taken for the high watermark",
        "ended[place] = PartitionEnd(offset, mark)",
        "ended[place] = PartitionEnd(offset, offset)",
        tests=(f"{_CONTRACT}::test_an_end_names_its_offset_which_an_open_transaction_holds_back",),
    ),
    Bug(
        "what was read is taken for the high watermark",
        "{place: mark for place, mark in marks.items() if mark is not None}",
        "{place: positions[place] for place in brought}",
        tests=(f"{_CONTRACT}::test_records_come_with_the_high_watermark_which_counts_an_open_transaction",),
    ),
    Bug(
        "each part of a reply tells its high watermark",
        "tells_marks=len(messages) < max_records",
        "tells_marks=True",
        tests=("contracts/test_kafka_batches.py",),
    ),
    Bug(
        "a reply with an error tells the high watermark",
        "marks[1] if marks[1] >= offset else None",
        "max(marks[1], offset)",
        tests=("contracts/test_kafka_batches.py",),
    ),
    Bug(
        "a log that its leader calls truncated is asked for again",
        "if is_out_of_range(error) and not is_truncation(error) and",
        "if is_out_of_range(error) and",
        tests=("unit/adapters/test_kafka_out_of_range.py",),
    ),
    Bug(
        "records that were deleted are asked for again",
        "return self._positions[place] >= starts.get(place, 0)",
        "return True",
        tests=("unit/adapters/test_kafka_out_of_range.py",),
    ),
)
