"""The values of knobs in the options of a command: single ones, and files as Pulsar has them."""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from controlplane.cli.common.suggestions import suggestion
from controlplane.core.bundles.profiles.registry import Registry
from controlplane.core.bundles.profiles.values import KNOBS_WITHOUT_EFFECT
from controlplane.core.bundles.settings.allowed import KnobRefusedError
from controlplane.core.bundles.settings.knob_texts import knob_kinds, knob_values, may_be_empty
from controlplane.errors import ConfigurationError

OPTION: Final = "--set"
_NEARLY_EQUAL: Final = 0.9


class SkippedLine(NamedTuple):
    """A line of a file that is not about a knob of these rules."""

    file: str
    number: int
    name: str
    meant: str
    """The knob that is probably meant; empty if the name is similar to none."""


@dataclass(frozen=True, slots=True)
class GivenKnobs:
    """The knobs that a command was given.

    Attributes:
        values: by knob, its value.
        places: by knob, the option or the line of a file that sets it.
        skipped: the other lines of files.
    """

    values: Mapping[str, object]
    places: Mapping[str, str]
    skipped: tuple[SkippedLine, ...]

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Put the places of the knobs before the refusal of a value.

        Raises:
            ConfigurationError: as within the block.
        """
        with _locating(self.places):
            yield


class _Line(NamedTuple):
    place: str
    file: str
    number: int
    knob: str
    text: str


def given_knobs(settings: Sequence[str], registry: Registry) -> GivenKnobs:
    """The values in an option.

    A file may be a whole ``broker.conf``: lines on anything else are skipped, and a line without a value leaves the
    knob as it is, as in Pulsar. A single value counts instead of that of a file.

    Args:
        settings: each ``KNOB=VALUE``, or the path of a file of such lines.
        registry: the known rules and settings.

    Raises:
        ConfigurationError: a single name is that of no knob, a knob has two values, or a text is not a value of its
            knob. The message names the knob and, for a file, the line.
    """
    kinds = {knob: kind for part in registry.parts for knob, kind in knob_kinds(part.settings())}
    known = [*kinds, *KNOBS_WITHOUT_EFFECT]
    lines: dict[str, _Line] = {}
    skipped: list[SkippedLine] = []
    for line in (line for text in settings for line in _lines(text)):
        if line.knob not in known:
            if not line.file:
                _refuse_unknown(line.knob, known)
            skipped.append(SkippedLine(line.file, line.number, line.knob, _meant(line.knob, known)))
        elif line.text or not line.file or may_be_empty(kinds.get(line.knob)):
            lines[line.knob] = _only(line, lines.get(line.knob))
    places = {knob: line.place for knob, line in lines.items()}
    with _locating(places):
        values = knob_values({knob: line.text for knob, line in lines.items()}, kinds)
    return GivenKnobs(values, places, tuple(skipped))


@contextmanager
def _locating(places: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except KnobRefusedError as error:
        found = dict.fromkeys(places[knob] for knob in error.knobs if knob in places)
        raise ConfigurationError(": ".join([*([", ".join(found)] if found else []), str(error)])) from error


def _lines(text: str) -> Iterator[_Line]:
    """The pair of a text, or those of the file that it names."""
    if "=" in text:
        knob, _, value = text.partition("=")
        yield _Line(OPTION, "", 0, knob.strip(), value.strip())
        return
    path = Path(text)
    if not path.is_file():
        raise ConfigurationError(f"{OPTION} {text!r} is neither KNOB=VALUE nor a file of such lines")
    for number, raw in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        line = raw.strip()
        if line and not line.startswith(("#", "!")):
            knob, _, value = line.partition("=")
            yield _Line(f"{text}, line {number}", text, number, knob.strip(), value.strip())


def _only(line: _Line, before: _Line | None) -> _Line:
    """The line that counts of two on the same knob: a single value before one of a file.

    Raises:
        ConfigurationError: neither is of a single value, or both, and their values differ.
    """
    if before is None or before.text == line.text:
        return line
    if bool(before.file) == bool(line.file):
        raise ConfigurationError(f"{line.place}: {line.knob} is given twice, also by {before.place}")
    return before if line.file else line


def _refuse_unknown(knob: str, known: Collection[str]) -> None:
    similar = suggestion(knob, known)
    raise ConfigurationError(f"{OPTION}: there is no knob {knob!r}{f': {similar}' if similar else ''}")


def _meant(name: str, known: Collection[str]) -> str:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_NEARLY_EQUAL)), "")
