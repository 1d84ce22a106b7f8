"""Draw ``cli.md`` from the command's own help: ``python docs/reference/generate_cli.py``.

A test compares the page with what this script would write.
"""

import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from controlplane.cli.root import root  # noqa: E402 - the checkout is on the path only now

PAGE = Path(__file__).with_name("cli.md")
_WIDTH = 120
_HEAD = """\
# The command

<!-- Drawn by docs/reference/generate_cli.py from the command's own help: change that, not this page. -->

Global options are valid anywhere in the line. Standard output has the result and nothing else.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | failed: the sentence on standard error says why |
| 2 | usage error, or an invalid setting: nothing was sent |
| 3 | Kafka, Redis or a leader could not be reached in time, or a drain did not end in time (it continues); a pipeline \
also lost its claim or its storage, or a stream failed too often: it may be started again |
| 130 | interrupted by Ctrl-C |
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_sections(root, "controlplane", None))


def _sections(command: click.Command, name: str, parent: click.Context | None) -> list[str]:
    context = click.Context(command, parent, name, terminal_width=_WIDTH, max_content_width=_WIDTH, show_default=True)
    own = f"\n## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if not isinstance(command, click.Group):
        return [own]
    below = [
        section
        for name_below in command.list_commands(context)
        if (child := command.get_command(context, name_below)) is not None
        for section in _sections(child, name_below, context)
    ]
    return [own, *below]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
