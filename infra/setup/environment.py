"""Set-up from a bare checkout, second step: Java, the virtual environment, the pinned packages, the Java libraries.

    prepare.py [--java] [-- COMMAND ...]

Each step runs only when its inputs changed; a stamp in the virtual environment remembers them. With a command, the
process becomes that command, with the virtual environment's programs first on PATH and JAVA_HOME set.
Standard library only: nothing is installed yet.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

EXIT_UNSUITABLE_MACHINE = 2
EXIT_FAILED = 1
ROOT = Path(__file__).resolve().parents[2]
PROGRESS_EVERY_S = 10.0
"""How often a running step says so where lines cannot be rewritten; on a terminal one line is rewritten."""


class SetupError(Exception):
    """A step failed; the message is a whole sentence for the person at the keyboard."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        """Keep the exit code beside the sentence."""
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Checkout:
    """The places of one checkout.

    Attributes:
        root: the folder that holds pyproject.toml.
    """

    root: Path

    @property
    def venv(self) -> Path:
        """The virtual environment's folder."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The virtual environment's Python."""
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """What was set up, as JSON: step -> digest of its inputs."""
        return self.venv / "prepared.json"

    @property
    def log(self) -> Path:
        """The full output of the steps, kept for the day one fails."""
        return self.venv / "prepare.log"

    def requirements(self, name: str) -> Path:
        """One of the hash-pinned lists of ``infra/python``."""
        return self.root / "infra" / "python" / f"{name}.txt"


def main(arguments: Sequence[str]) -> int:
    """Prepare, then become the command if there is one; returns an exit code otherwise."""
    options, command = _split(arguments)
    unknown = set(options) - {"--java"}
    if unknown:
        say(f"prepare.py knows --java and -- COMMAND, not {' '.join(sorted(unknown))}")
        return EXIT_UNSUITABLE_MACHINE
    checkout = Checkout(ROOT)
    environment = dict(os.environ)
    try:
        if "--java" in options:
            # Before anything is fetched: a machine without Java should say so at once.
            java_home = find_java_home(checkout)
            environment["JAVA_HOME"] = str(java_home)
            environment["PATH"] = f"{java_home / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}"
        with _one_at_a_time(checkout):
            prepare_packages(checkout)
            if "--java" in options:
                fetch_jars(checkout, environment)
    except SetupError as error:
        say(str(error))
        return error.exit_code
    if command:
        environment["PATH"] = f"{checkout.venv / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}"
        environment["VIRTUAL_ENV"] = str(checkout.venv)
        sys.stdout.flush()
        os.execvpe(command[0], list(command), environment)  # noqa: S606 - an argument list, no shell
    return 0


def say(line: str) -> None:
    """One line on standard error, so that standard output is the command's alone."""
    print(line, file=sys.stderr, flush=True)


def find_java_home(checkout: Checkout) -> Path:
    """The folder of a Java that Kafka and Spark run on, found by the product's own rule.

    Raises:
        SetupError: there is none; the message says what to install.
    """
    if str(checkout.root) not in sys.path:
        sys.path.insert(0, str(checkout.root))
    from controlplane.embedded.java import find_java  # noqa: PLC0415 - only Java targets need it
    from controlplane.errors import PrerequisiteError  # noqa: PLC0415 - as above

    try:
        return find_java().home
    except PrerequisiteError as error:
        raise SetupError(str(error), EXIT_UNSUITABLE_MACHINE) from error


def prepare_packages(checkout: Checkout) -> None:
    """Bring the virtual environment to what the pinned lists and pyproject.toml say; nothing to do is the usual case.

    Raises:
        SetupError: a step failed; its whole output is in the log.
    """
    wanted = _wanted(checkout)
    done = _read_stamp(checkout)
    reason = _why_create(checkout, done, wanted)
    if reason:
        done = {}
        _create_venv(checkout, reason)
    if done == wanted:
        return
    pip = [str(checkout.python), "-m", "pip", "--disable-pip-version-check", "install"]
    pinned = [*pip, "--require-hashes", "--no-build-isolation", "-r"]
    if done.get("packages") != wanted["packages"]:
        run_step(checkout, "Installing what builds packages", [*pinned, str(checkout.requirements("build"))])
        run_step(checkout, "Installing the pinned packages", [*pinned, str(checkout.requirements("requirements"))])
    editable = [*pip, "--no-deps", "--no-build-isolation", "--editable", str(checkout.root)]
    run_step(checkout, "Installing this project", editable)
    checkout.stamp.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")


def fetch_jars(checkout: Checkout, environment: dict[str, str]) -> None:
    """Fetch the Java libraries that are not in the cache yet; the module shows its own progress.

    Raises:
        SetupError: they could not be fetched; the module has said why.
    """
    command = [str(checkout.python), "-m", "controlplane.embedded.jars", "broker", "spark"]
    code = subprocess.run(command, env=environment, cwd=checkout.root, stdout=sys.stderr, check=False).returncode
    if code != 0:
        raise SetupError("The Java libraries are not complete; the lines above say why.")


def run_step(checkout: Checkout, title: str, command: Sequence[str]) -> None:
    """Run one command into the log while showing that it lives: elapsed seconds and its latest line.

    Raises:
        SetupError: it failed; the message ends with its last lines.
    """
    started = time.monotonic()
    with checkout.log.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        _show_progress(checkout, title, process, started)
    except BaseException:
        # Ctrl-C included: a half-running pip would go on writing into the environment.
        process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        last_lines = "\n".join(_log_lines(checkout)[-15:])
        raise SetupError(f"{title} failed (all of its output: {checkout.log}). It ended with:\n{last_lines}")
    say(f"{title}: done in {time.monotonic() - started:.0f} s")


def _show_progress(checkout: Checkout, title: str, process: subprocess.Popen[bytes], started: float) -> None:
    on_terminal = sys.stderr.isatty()
    next_line_at = started + 2
    if not on_terminal:
        say(f"{title} ...")
    while True:
        try:
            process.wait(timeout=0.25)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if now < next_line_at:
                continue
            latest = (_log_lines(checkout) or [""])[-1].strip()
            line = f"{title} ... {now - started:.0f} s  {latest}"
            if on_terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r{line[:width]:<{width}}", end="", file=sys.stderr, flush=True)
                next_line_at = now + 0.25
            else:
                say(line[:160])
                next_line_at = now + PROGRESS_EVERY_S
        else:
            if on_terminal:
                print(f"\r{'':<{shutil.get_terminal_size().columns - 1}}\r", end="", file=sys.stderr, flush=True)
            return


def _log_lines(checkout: Checkout) -> list[str]:
    return checkout.log.read_text(encoding="utf-8", errors="replace").splitlines()


def _why_create(checkout: Checkout, done: dict[str, str], wanted: dict[str, str]) -> str | None:
    """Why the virtual environment has to be made (again), or None when it can stay."""
    try:
        lines = (checkout.venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "it is not whole" if checkout.venv.exists() else "it is not there"
    settings = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    # venv and virtualenv say "version", uv says "version_info".
    made_by = settings.get("version", settings.get("version_info", "an unknown Python"))
    if made_by.split(".")[:2] != [str(number) for number in sys.version_info[:2]]:
        return f"it was made by Python {made_by}"
    if not checkout.python.exists():
        return "its Python is gone"
    if done.get("place", wanted["place"]) != wanted["place"]:
        return f"it was made in {done['place']}"
    return None


def _create_venv(checkout: Checkout, reason: str) -> None:
    if checkout.venv.exists():
        say(f"Making {checkout.venv} again: {reason}")
        shutil.rmtree(checkout.venv)
    command = [sys.executable, "-m", "venv", str(checkout.venv)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except BaseException:
        # Ctrl-C included: half an environment would be taken for a whole one.
        shutil.rmtree(checkout.venv, ignore_errors=True)
        raise
    if result.returncode != 0:
        shutil.rmtree(checkout.venv, ignore_errors=True)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"{sys.executable} cannot make virtual environments: install the package python{version}-venv (Debian and "
            f"Ubuntu keep it apart), or name another Python: make PYTHON=/path/to/python3\n{result.stdout.strip()}",
            EXIT_UNSUITABLE_MACHINE,
        )


def _wanted(checkout: Checkout) -> dict[str, str]:
    pyproject = tomllib.loads((checkout.root / "pyproject.toml").read_text(encoding="utf-8"))
    # Only what an installation is made from: a changed lint rule installs nothing.
    installed_from = [pyproject["build-system"], pyproject["project"], pyproject["tool"]["hatch"]]
    lists = [checkout.requirements(name).read_bytes() for name in ("build", "requirements")]
    return {
        # Scripts in an environment name its folder: a copied or moved checkout needs a new one.
        "place": str(checkout.root),
        "packages": hashlib.sha256(b"\0".join(lists)).hexdigest(),
        "project": hashlib.sha256(json.dumps(installed_from, sort_keys=True).encode()).hexdigest(),
    }


def _read_stamp(checkout: Checkout) -> dict[str, str]:
    try:
        stamp = json.loads(checkout.stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Never prepared, or interrupted while writing: every step runs, and finds what it already did.
        return {}
    return {str(step): str(digest) for step, digest in stamp.items()} if isinstance(stamp, dict) else {}


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return list(arguments), []
    position = list(arguments).index("--")
    return list(arguments[:position]), list(arguments[position + 1 :])


@contextmanager
def _one_at_a_time(checkout: Checkout) -> Iterator[None]:
    """Two makes at once would write into one environment: the second waits for the first."""
    with (checkout.root / "pyproject.toml").open(encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another set-up in this folder ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
