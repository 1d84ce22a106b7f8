"""prepare.py: a Python that will do, or one sentence that says what to install."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

PREPARE = Path(__file__).resolve().parents[2] / "infra" / "setup" / "prepare.py"
EXIT_UNSUITABLE_MACHINE = 2


def _load() -> ModuleType:
    specification = importlib.util.spec_from_file_location("prepare_under_test", PREPARE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _run_as_old_python(path_folder: Path) -> subprocess.CompletedProcess[str]:
    """prepare.py under a Python that says it is 3.9, with only this folder on PATH."""
    program = (
        "import runpy, sys; sys.version_info = (3, 9, 2, 'final', 0); sys.argv = ['prepare.py', '--java']; "
        f"runpy.run_path({str(PREPARE)!r}, run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": str(path_folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "suitable"),
    [((2, 7), False), ((3, 10), False), ((3, 11), True), ((3, 13), True), ((3, 14), False), ((4, 0), False)],
)
def test_versions_from_3_11_to_3_13_suit(version: tuple[int, int], suitable: bool) -> None:
    """The bounds are those of pyproject.toml: below, the code does not run; above, it was never tried."""
    assert _load().is_suitable(version) is suitable


def test_old_python_alone_gets_one_sentence(tmp_path: Path) -> None:
    """Who has only an old Python learns what to install, in one line and without a traceback."""
    result = _run_as_old_python(tmp_path)
    assert result.returncode == EXIT_UNSUITABLE_MACHINE
    assert result.stderr.startswith("Python 3.11 to 3.13 is needed, and ")
    assert "is 3.9: install one (for example the package python3.11)" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_old_python_hands_over_to_a_suitable_one(tmp_path: Path) -> None:
    """A machine whose ``python3`` is old and that has a newer one besides needs no option."""
    _program(tmp_path, "python3.11", "exit 127")  # a version manager's stand-in that cannot run
    _program(tmp_path, "python3.12", 'if [ "$1" = -c ]; then echo 3 12; else echo "handed over: $*"; fi')
    result = _run_as_old_python(tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"handed over: {PREPARE} --java\n"


def test_python_that_answers_another_version_is_not_taken(tmp_path: Path) -> None:
    """A name on PATH proves nothing: a stand-in may start whatever its settings say."""
    _program(tmp_path, "python3.11", "echo 3 9")
    assert _run_as_old_python(tmp_path).returncode == EXIT_UNSUITABLE_MACHINE


def test_make_names_a_python_that_does_not_run(tmp_path: Path) -> None:
    """Without any Python, make itself says the sentence instead of the shell's "not found"."""
    missing = tmp_path / "python3"
    command = ["make", "--no-print-directory", f"PYTHON={missing}", "setup"]
    result = subprocess.run(command, cwd=PREPARE.parents[2], capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode != 0
    assert f"Python 3.11 to 3.13 is needed, and '{missing}' does not run: install one" in result.stderr
