"""The recorded answers of other systems, as files and as the cases that this repository holds."""

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

Case: TypeAlias = dict[str, Any]

_GOLDEN: Final = Path(__file__).parents[1] / "golden"


def cases(path: Path) -> Iterator[Case]:
    """The cases of a compressed file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


@cache
def recorded(system: str) -> Mapping[str, tuple[Case, ...]]:
    """By operation, the cases of ``tests/golden/<system>``. They are decoded once in a process: do not change them."""
    by_operation: dict[str, list[Case]] = {}
    for case in cases(_GOLDEN / system / "vectors.jsonl.gz"):
        by_operation.setdefault(case["op"], []).append(case)
    return {operation: tuple(chosen) for operation, chosen in by_operation.items()}
