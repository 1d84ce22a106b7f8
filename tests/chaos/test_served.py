"""What a process writes down is read as it was, and nothing is made of what was not seen."""

import io
from pathlib import Path
from typing import cast

from controlplane.core.values.identifiers import Epoch, Term
from controlplane.node import FencingToken
from tests.chaos.served import CLOSE_US, Coverage, Process, ServedWriter, Serving, path_of, read_folder, read_lines

N1 = Process("n1", 10)
FIVE, NINE = (FencingToken(Term(1), Epoch(each)) for each in (5, 9))


def written(looks: list[tuple[int, int, dict[str, FencingToken]]]) -> list[bytes]:
    """The lines of these looks."""
    stream = io.BytesIO()
    writer = ServedWriter(cast("io.RawIOBase", stream))
    for look in looks:
        writer.look(*look)
    return stream.getvalue().splitlines(keepends=True)


def test_a_thing_is_served_from_the_first_look_to_the_last_under_one_token() -> None:
    """Certainly: from the end of the first look to the beginning of the last."""
    looks = [(0, 10, {}), (100, 110, {"a": FIVE}), (200, 210, {"a": FIVE, "b": NINE}), (300, 310, {"b": NINE})]
    servings, coverage = read_lines(N1, written([*looks, (400, 410, {"b": NINE})]))
    assert servings == [Serving("a", N1, FIVE, 110, 200), Serving("b", N1, NINE, 210, 400)]
    assert coverage == Coverage(5, 0)


def test_another_token_is_another_time() -> None:
    """Others may have served between the two looks."""
    servings, _ = read_lines(N1, written([(0, 10, {"a": FIVE}), (100, 110, {"a": NINE}), (200, 210, {"a": NINE})]))
    assert servings == [Serving("a", N1, FIVE, 10, 0), Serving("a", N1, NINE, 110, 200)]


def test_nothing_is_known_of_the_time_between_looks_that_are_far_apart() -> None:
    """The process may have stood still, and have been replaced meanwhile."""
    later_us = 110 + CLOSE_US
    looks = [(0, 10, {"a": FIVE}), (100, 110, {"a": FIVE}), (later_us, later_us + 10, {"a": FIVE})]
    servings, coverage = read_lines(N1, written([*looks, (later_us + 100, later_us + 110, {"a": FIVE})]))
    assert servings == [Serving("a", N1, FIVE, 10, 100), Serving("a", N1, FIVE, later_us + 10, later_us + 100)]
    assert coverage == Coverage(4, 1)


def test_what_is_lost_between_looks_that_are_far_apart_is_not_seen_in_the_later_one() -> None:
    """It was served at the first look for the last time that is known."""
    later_us = 110 + CLOSE_US
    servings, _ = read_lines(
        N1, written([(0, 10, {"a": FIVE}), (100, 110, {"a": FIVE}), (later_us, later_us + 10, {})])
    )
    assert servings == [Serving("a", N1, FIVE, 10, 100)]


def test_a_process_that_stands_still_within_a_look_shows_a_moment() -> None:
    """What was seen held somewhere between its two times."""
    servings, _ = read_lines(N1, written([(0, 5 * CLOSE_US, {"a": FIVE})]))
    assert servings == [Serving("a", N1, FIVE, 5 * CLOSE_US, 0)]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    """The process was killed while it wrote; what is before it counts."""
    lines = written([(0, 10, {"a": FIVE}), (100, 110, {"a": FIVE})])
    path_of(tmp_path, N1).write_bytes(b"".join([*lines, b'[200,210,{"a":nu']))
    assert list(read_folder(tmp_path)) == [([Serving("a", N1, FIVE, 10, 100)], Coverage(2, 0))]
