"""Add what is new to the frozen bytes: ``python -m tests.golden.rewrite [--release]``.

Cases of a released schema version are added, never changed. Those of a version that is still being worked on follow
the code. ``--release`` freezes every schema that is not released yet.
"""

import argparse
import shutil
import sys
from collections import defaultdict
from collections.abc import Container
from typing import Any

from controlplane.codec.framing import default_framing
from controlplane.errors import InvalidInputError
from controlplane.resources import resource_path
from tests.golden.frozen import (
    DAMAGED_FILE,
    RECORDS,
    RELEASED,
    SUMS_FILE,
    encode,
    plain,
    read_json,
    released_sums,
    schema_of,
    sha256,
    write_json,
)
from tests.golden.samples import SAMPLES, damaged


class FrozenError(Exception):
    """The code no longer writes what a released schema version is known to be written as."""


def rewrite() -> None:
    """Write the golden files of the current schema versions.

    Raises:
        FrozenError: a case of a released version would change.
    """
    released = released_sums()
    cases: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for sample in SAMPLES:
        encoded = encode(sample.value, sample.max_part_bytes)
        cases[schema_of(encoded)].append(
            {
                "name": sample.name,
                "max_part_bytes": sample.max_part_bytes,
                "value": plain(sample.value),
                "records": [record.hex() for record in encoded],
            }
        )
    for schema_id, new in cases.items():
        path = RECORDS / f"{schema_id}.json"
        write_json(path, merged(read_json(path), new) if f"{schema_id}.avsc" in released else new)
    refusals = [
        {"name": each.name, "topic": each.topic, "key": each.key, "value": each.value.hex(), "reason": each.reason}
        for each in damaged()
    ]
    follow_the_code = {each.name for each in damaged() if not is_frozen(each.value, released)}
    frozen = [case for case in read_json(DAMAGED_FILE) if case["name"] not in follow_the_code]
    write_json(DAMAGED_FILE, merged(frozen, refusals) if released else refusals)


def is_frozen(value: bytes, released: Container[str]) -> bool:
    """Whether a damaged record keeps its bytes: it has those of a released schema, or of none."""
    try:
        return f"{default_framing().unframe(value)[0].id}.avsc" in released
    except InvalidInputError:
        return True


def merged(frozen: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The frozen cases as they are, and after them those with other names.

    What counts of a sample is the bytes: its value may have got fields since, which a later version of its schema has.

    Raises:
        FrozenError: a case of the same name has other bytes now.
    """
    known = {case["name"]: case for case in frozen}
    changed = [case["name"] for case in new if _bytes(known.get(case["name"], case)) != _bytes(case)]
    if changed:
        raise FrozenError(f"{', '.join(changed)}: released bytes would change; write a new schema version instead")
    return [*frozen, *(case for case in new if case["name"] not in known)]


def _bytes(case: dict[str, Any]) -> object:
    return case.get("records", case)


def release() -> None:
    """Copy every schema that is not released yet, and note its digest."""
    sums = released_sums()
    for path in sorted(resource_path("schemas").glob("*.avsc")):
        if path.name not in sums:
            shutil.copyfile(path, RELEASED / path.name)
            sums[path.name] = sha256(path)
    SUMS_FILE.write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)), encoding="utf-8")


def main() -> int:
    """Run from the command line; exit status 1 if something frozen would change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="store_true", help="freeze the schemas that are not released yet")
    arguments = parser.parse_args()
    try:
        rewrite()
    except FrozenError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if arguments.release:
        release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
