"""What the two indexes of the documentation name, and what of the pages they leave out or say otherwise."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from tests.architecture.tidy import ROOT

DOCS: Final = ROOT / "docs"
RECORDS: Final = DOCS / "decisions"
STATUSES: Final = re.compile(r"accepted|superseded by \d{4}")
_ENTRY = re.compile(r"^- \[[^\]]+\]\(([^)]+)\): (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| (\d{4}) \| \[(.+?)\]\((\S+\.md)\) \| (.+) \|$", re.MULTILINE)
_TITLE = re.compile(r"^# (\d{4})\. (.+)\n\n\*\*Status\.\*\* (Accepted|Superseded by \[\d{4}\])", re.MULTILINE)


class Record(NamedTuple):
    """A decision record, as its own file or the index tells it; ``status`` in lower case and without links."""

    number: str
    title: str
    file: str
    status: str


def described_pages(index: str) -> list[str]:
    """The paths that an index names with a sentence: those of lines such as ``- [name](path): What it tells.``."""
    return [path for path, sentence in _ENTRY.findall(index) if len(sentence.split()) > 1 and sentence.endswith(".")]


def pages(folder: Path) -> list[str]:
    """The paths of a folder's pages, from there: all but indexes, and of decision records none."""
    found = (path for path in folder.rglob("*.md") if path.name != "README.md" and path.parent.name != "decisions")
    return sorted(str(path.relative_to(folder)) for path in found)


def indexed_records(index: str) -> list[Record]:
    """The decision records that an index's table tells."""
    return [Record(number, title, file, _plain(status)) for number, title, file, status in _ROW.findall(index)]


def record_of(file: str, text: str) -> Record:
    """A decision record by its own first lines.

    Raises:
        ValueError: it does not begin with a title and a status.
    """
    found = _TITLE.match(text)
    if found is None:
        raise ValueError(
            f"{file} does not begin with '# NNNN. Title' and '**Status.** Accepted' or 'Superseded by [NNNN]'"
        )
    return Record(found[1], found[2], file, _plain(found[3]))


def _plain(status: str) -> str:
    return re.sub(r"\[(\d{4})\](?:\(\S*\))?", r"\1", status).lower()
