"""The text form of a scenario: prose, commands, and after ``----`` the output that they are expected to print.

A file is a row of blocks, divided by empty lines. Lines that begin with ``#`` are prose. Every other line up to
``----`` is a command; the lines after it are what the commands of the block print together. A file opens with a
paragraph of prose that says what is shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

DIVIDER: Final = "----"
_PROSE: Final = "#"


class ScenarioError(Exception):
    """A scenario is written wrongly; the message says which line, and what was expected."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some commands with the prose above them.

    Attributes:
        line: number of the first line in the file.
        prose: the lines that begin with ``#``, as they are.
        commands: the command lines, as they are; none in a block that is only prose.
    """

    line: int
    prose: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed scenario. It has no expected output: :func:`rendered` makes the whole file anew, to be compared."""

    blocks: tuple[Block, ...]


def parse(text: str) -> Script:
    """A scenario from the text of its file.

    Raises:
        ScenarioError: there is no opening paragraph, commands have no ``----``, or prose stands below a command.
    """
    blocks = []
    begin = 0
    lines = [*text.splitlines(), ""]
    for end, line in enumerate(lines):
        if not line.strip():
            if end > begin:
                blocks.append(_block(lines[begin:end], begin + 1))
            begin = end + 1
    if not blocks or blocks[0].commands:
        raise ScenarioError("line 1: a scenario opens with a paragraph of lines that begin with '#': what it shows")
    return Script(tuple(blocks))


def rendered(script: Script, perform: Callable[[int, str], Sequence[str]]) -> str:
    """The text of the file with the output that the commands have now.

    Args:
        script: the scenario.
        perform: carries out the command at a line, and returns the lines that it prints.
    """
    paragraphs = []
    for block in script.blocks:
        lines = list(block.prose)
        if block.commands:
            first = block.line + len(block.prose)
            printed = [out for index, command in enumerate(block.commands) for out in perform(first + index, command)]
            lines += [*block.commands, DIVIDER, *printed]
        paragraphs.append("".join(f"{line.rstrip()}\n" for line in lines))
    return "\n".join(paragraphs)


def _block(lines: Sequence[str], number: int) -> Block:
    above = list(lines[: lines.index(DIVIDER)]) if DIVIDER in lines else list(lines)
    prose = [line for line in above if line.startswith(_PROSE)]
    commands = above[len(prose) :]
    if above[: len(prose)] != prose:
        raise ScenarioError(f"line {number}: prose stands above the commands of a block, not between them")
    if bool(commands) != (DIVIDER in lines):
        raise ScenarioError(f"line {number}: a block of commands ends with a line {DIVIDER!r}, prose alone has none")
    return Block(number, tuple(prose), tuple(commands))
