"""Options whose values are pairs, given one by one or as files with one pair per line."""

from collections.abc import Sequence
from pathlib import Path

from controlplane.errors import ConfigurationError


def pairs_of(option: str, texts: Sequence[str], form: str = "key=value") -> list[tuple[str, str]]:
    """The pairs in an option's values, in their order.

    Args:
        option: the option's name, for messages.
        texts: each a pair or a file of such lines, where ``#`` begins a comment line.
        form: the form of a pair, for messages.

    Raises:
        ConfigurationError: a text is neither, or a line of a file is no pair.
    """
    pairs = []
    for text in texts:
        lines = [text]
        if "=" not in text:
            path = Path(text)
            if not path.is_file():
                raise ConfigurationError(f"{option} {text!r} is neither {form} nor a file of such lines")
            lines = path.read_text(encoding="utf-8").splitlines()
        for number, raw in enumerate(lines, start=1):
            line = raw.strip()
            if not line or line.startswith("#"):
                continue
            left, equals, right = line.partition("=")
            if not equals:
                raise ConfigurationError(f"{option} {text}, line {number}: no '=' in it; write {form}")
            pairs.append((left.strip(), right.strip()))
    return pairs
