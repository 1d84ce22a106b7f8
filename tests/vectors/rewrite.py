"""Write the vectors that readers in other languages are checked with: ``python -m tests.vectors.rewrite``.

They are what our code says, so a changed file is a changed protocol: look at the difference before you keep it. Hashes
and bundles are frozen: cases are added, never changed.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from controlplane.resources import resource_path
from tests.golden.rewrite import FrozenError, merged
from tests.vectors.decision_cases import canonical_cases, decision_log_cases
from tests.vectors.hash_cases import bundle_cases, hash_cases
from tests.vectors.reader_scripts import reader_scripts
from tests.vectors.record_cases import record_cases, table_digest_cases

FOLDER: Final = Path(resource_path("schemas")) / "vectors"
FROZEN: Final = ("hashes", "bundles")
MAKERS: Final[dict[str, Callable[[], list[dict[str, Any]]]]] = {
    "hashes": hash_cases,
    "bundles": bundle_cases,
    "records": record_cases,
    "table_digests": table_digest_cases,
    "decision_digests": canonical_cases,
    "decision_logs": decision_log_cases,
    "reader_scripts": reader_scripts,
}


def read(name: str) -> list[dict[str, Any]]:
    """The cases of a file; empty if there is none yet."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else []


def made(name: str) -> list[dict[str, Any]]:
    """The cases that a file should hold.

    Raises:
        FrozenError: a frozen case would change.
    """
    cases = MAKERS[name]()
    return merged(read(name), cases) if name in FROZEN else cases


def text_of(cases: Sequence[dict[str, Any]]) -> str:
    """A file's contents: a line for each case, so that a changed one shows."""
    return "[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n"


def main() -> int:
    """Run from the command line; exit status 1 if something frozen would change."""
    try:
        texts = {name: text_of(made(name)) for name in MAKERS}
    except FrozenError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for name, text in texts.items():
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
