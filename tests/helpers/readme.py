"""Running pages: their marked blocks and commands, and the cluster that the README starts."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from controlplane.embedded.server import free_port
from controlplane.embedded.services import addresses_path

ROOT: Final = Path(__file__).resolve().parents[2]
README: Final = ROOT / "README.md"
DEADLINE_S: Final = 90.0

_BLOCK: Final = re.compile(r"^```(?P<language>[a-z]+) (?P<name>[a-z]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_OWN_TERMINAL: Final = "# a terminal of its own"
_KAFKA_PORT: Final = "9092"


def blocks(page: Path = README) -> dict[str, str]:
    """The marked code blocks of a page: the name after the language, and the text."""
    return {found["name"]: found["text"] for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))}


def block_with(page: Path, name: str, given: Mapping[str, str]) -> str:
    """A marked block in which other words stand for some of its own, each of which it has."""
    block = blocks(page)[name]
    for named, replacement in given.items():
        assert named in block, named
        block = block.replace(named, replacement)
    return block


def commands(program: str, page: Path = README) -> list[list[str]]:
    """Every command line of a program in a page, on a console or in a sentence, without the program's name."""
    sentences = re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8"))
    return [*console_commands(program, page), *_words(program, sentences)]


def console_commands(program: str, page: Path) -> list[list[str]]:
    """The same of the page's consoles alone."""
    return _words(program, re.findall(r"^\$ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE))


def _words(program: str, lines: list[str]) -> list[list[str]]:
    split = [shlex.split(line, comments=True) for line in lines if line.startswith(f"{program} ")]
    return [words[1:] for words in split]


class ReadmeCluster:
    """The cluster of the README's block ``cluster``, on free ports and in a new folder; ends with the context.

    Args:
        folder: where the commands run; it will hold the data and the outputs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kafka_port = free_port()
        self._started = ExitStack()

    @property
    def bootstrap_servers(self) -> str:
        """Kafka's address."""
        return f"localhost:{self.kafka_port}"

    def __enter__(self) -> Self:
        """Run the block's lines as a reader would."""
        with ExitStack() as starting:
            for line in blocks()["cluster"].splitlines():
                words = [*_OUR_COMMAND, *shlex.split(self._here(line), comments=True)[2:]]
                if _OWN_TERMINAL in line:
                    process = starting.enter_context(Running(words, self.folder, {"PYTHONPATH": str(ROOT)}))
                    if "up" in words:
                        process.wait_until(addresses_path(self.folder / ".controlplane").exists)
                else:
                    run(words, self.folder, {"PYTHONPATH": str(ROOT)})
            self._started = starting.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """End the controller, then Kafka and Valkey."""
        self._started.close()

    def snippet(self, name: str, folder: Path) -> Path:
        """A Python block as a program in a folder, with this cluster's address."""
        path = folder / f"{name}.py"
        path.write_text(self._here(blocks()[name]), encoding="utf-8")
        return path

    def run_block(self, name: str, folder: Path) -> list[str]:
        """Run the lines of a console block, and return what each has printed; temporary files go to a folder."""
        programs = {"controlplane": _OUR_COMMAND, "python": [sys.executable]}
        environment = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
        lines = (shlex.split(line)[1:] for line in self._here(blocks()[name]).splitlines())
        return [run([*programs[words[0]], *words[1:]], self.folder, environment) for words in lines]

    def _here(self, text: str) -> str:
        return text.replace(_KAFKA_PORT, str(self.kafka_port))


class Running:
    """A process of its own with its output in a file; a context manager that asks it to end."""

    def __init__(self, words: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._words = words
        self._log = folder / f"{'-'.join(Path(word).name for word in words[-2:])}.log"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                env=clean_environment() | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """Its output up to now."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_until(self, condition: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
        """Poll a condition while the process lives."""
        deadline_s = time.monotonic() + within_s
        while not condition():
            assert self._process.poll() is None, f"{self._words} ended with {self._process.returncode}:\n{self.output}"
            assert time.monotonic() < deadline_s, f"{self._words}: not within {within_s} s\n{self.output}"
            time.sleep(0.05)

    def end(self) -> int:
        """Ask it to end, as a service manager does, and return its exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(DEADLINE_S)

    def interrupt(self) -> int:
        """Press Ctrl-C, which reaches the processes that it started as well, and return its exit status."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self._process.wait(DEADLINE_S)

    def __enter__(self) -> Self:
        """The process, which runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it, by force if it does not listen."""
        if self._process.poll() is None:
            try:
                self.end()
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def run(words: list[str], folder: Path, environment: dict[str, str] | None = None, status: int = 0) -> str:
    """Run a program, expect an exit status, and return standard output (standard error if it should fail)."""
    result = subprocess.run(
        words,
        cwd=folder,
        env=clean_environment() | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=DEADLINE_S,
    )
    assert result.returncode == status, f"{words} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}"
    return result.stderr if status else result.stdout


def clean_environment() -> dict[str, str]:
    """This process's environment without settings that lead Python to this checkout or the command to a cluster."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CONTROLPLANE_"))}


_OUR_COMMAND: Final = [sys.executable, "-m", "controlplane.cli"]
