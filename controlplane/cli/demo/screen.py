"""The output while the demo runs: a live display on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from controlplane.cli.common.output import cell_text
from controlplane.cli.demo.picture import NODE_COLUMNS, Picture

LINE_EVERY_S = 2.0
"""Without a terminal, the awaited condition is printed after this time without output,"""
REPEATED_EVERY_S = 15.0
"""and again after this one if nothing else has changed, so that a reader sees that the demo is not stuck."""


class Screen(Protocol):
    """Shows the state until it is left; printed lines stay."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End; what was said stays."""
        ...

    def say(self, line: str) -> None:
        """Print a line that stays."""
        ...


def open_screen(picture: Callable[[], Picture]) -> Screen:
    """The screen that fits standard output; ``picture`` is called from another thread."""
    return LiveScreen(picture) if sys.stdout.isatty() else PlainScreen(picture)


class PlainScreen:
    """Lines only: every printed line, and after a time without output the state, which is repeated rarely."""

    def __init__(
        self, picture: Callable[[], Picture], every_s: float = LINE_EVERY_S, repeated_every_s: float = REPEATED_EVERY_S
    ) -> None:
        self._picture = picture
        self._every_s = every_s
        self._repeated_every_s = repeated_every_s
        self._told: tuple[str | int, ...] = ()
        self._spoken_at_s = time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="demo-screen", daemon=True)

    def __enter__(self) -> Self:
        """Begin to show."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End."""
        self._end.set()
        self._thread.join()

    def say(self, line: str) -> None:
        """Print a line."""
        self._spoken_at_s = time.monotonic()
        click.echo(line)

    def _tick(self) -> None:
        while not self._end.wait(self._every_s / 10):
            silent_s = time.monotonic() - self._spoken_at_s
            if silent_s < self._every_s * 0.9:
                continue
            picture = self._picture()
            if picture.subject != self._told:
                self._told = picture.subject
                self.say(picture.line())
            elif silent_s >= self._repeated_every_s:
                self.say(picture.progress_line())


class LiveScreen:
    """The state, redrawn four times per second below the printed lines."""

    def __init__(self, picture: Callable[[], Picture]) -> None:
        self._live = Live(console=Console(), get_renderable=lambda: _drawn(picture()), refresh_per_second=4)

    def __enter__(self) -> Self:
        """Begin to show."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End; the last picture stays."""
        self._live.stop()

    def say(self, line: str) -> None:
        """Print a line above the picture."""
        self._live.console.print(Text(line))


def _drawn(picture: Picture) -> RenderableType:
    nodes = Table(expand=True)
    for column in NODE_COLUMNS:
        nodes.add_column(column.replace("_", " "))
    for row in picture.nodes:
        style = "" if row["status"] == "active" else "red"
        nodes.add_row(*(Text(cell_text(row[column])) for column in NODE_COLUMNS), style=style)
    counts = picture.counts
    head = Text(
        f"{picture.elapsed_s:5.0f} s  {picture.step}\nwaiting for: {picture.waiting_for}\n"
        f"epoch {picture.epoch}  term {picture.term}  leader {picture.leader or '-'}  "
        f"answered {counts.answered:,}  refused {counts.refused:,}  failed {counts.failed:,}"
    )
    return Panel(Group(head, nodes), title="controlplane demo", title_align="left")
