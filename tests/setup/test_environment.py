"""environment.py: Java is judged before anything is fetched, and a step runs only when its inputs changed."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from infra.setup import environment

EXIT_UNSUITABLE_MACHINE = 2
PYPROJECT = """
[build-system]
requires = ["hatchling"]
[project]
name = "sample"
[tool.hatch]
a = 1
[tool.ruff]
line-length = 120
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java: an empty folder on PATH, no variable, nothing in the usual places."""
    monkeypatch.setattr("controlplane.embedded.java._INSTALL_FOLDERS", (f"{tmp_path}/jvm/*",))
    for variable in ("JAVA_HOME", "CONTROLPLANE_JAVA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> environment.Checkout:
    """A checkout with its own lists, in which installing only writes down what would have been run."""
    root = tmp_path / "checkout"
    (root / "infra" / "python").mkdir(parents=True)
    (root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    for name in ("build", "requirements"):
        (root / "infra" / "python" / f"{name}.txt").write_text(f"{name}==1 --hash=sha256:00\n", encoding="utf-8")
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").touch()
    version = ".".join(str(number) for number in sys.version_info[:3])
    (root / ".venv" / "pyvenv.cfg").write_text(f"home = /usr\nversion = {version}\n", encoding="utf-8")
    monkeypatch.setattr(environment, "run_step", lambda _checkout, title, _command: _STEPS.append(title))
    _STEPS.clear()
    return environment.Checkout(root)


_STEPS: list[str] = []
ALL_STEPS = ["Installing what builds packages", "Installing the pinned packages", "Installing this project"]


def _java(home: Path, version: str) -> Path:
    """A Java installation that answers with this version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("version", "found"),
    [
        (None, "found: none at all"),
        ("11.0.20", "found: 11 in "),
        ("25.0.1", "found: 25 in "),
        ("1.8.0_392", "found: 8 in "),
    ],
)
def test_missing_or_unsuitable_java_gets_one_sentence(
    machine: Path, capsys: pytest.CaptureFixture[str], version: str | None, found: str
) -> None:
    """Spark runs on 17 and 21 only; the sentence says which is needed and which was found, before any download."""
    if version:
        _java(machine / "jvm" / "some", version)
    assert environment.main(["--java"]) == EXIT_UNSUITABLE_MACHINE
    error = capsys.readouterr().err
    assert error.startswith("Java 17 or 21 is needed")
    assert found in error
    assert "install" in error
    assert len(error.splitlines()) == 1


def test_suitable_java_is_found_behind_an_unsuitable_one(machine: Path) -> None:
    """A machine may have several: the newest on PATH does not hide the one that Spark supports."""
    newest = _java(machine / "jvm" / "jdk-25", "25.0.1")
    (machine / "path" / "java").symlink_to(newest)
    _java(machine / "jvm" / "jdk-21", "21.0.5")
    assert environment.find_java_home(environment.Checkout(environment.ROOT)) == machine / "jvm" / "jdk-21"


def test_first_time_runs_every_step_and_second_time_none(checkout: environment.Checkout) -> None:
    """Every target calls set-up, so doing nothing has to be the usual case."""
    environment.prepare_packages(checkout)
    assert _STEPS == ALL_STEPS
    environment.prepare_packages(checkout)
    assert _STEPS == ALL_STEPS


@pytest.mark.parametrize("name", ["build", "requirements"])
def test_changed_pins_are_installed(checkout: environment.Checkout, name: str) -> None:
    """A colleague's new lock arrives with the next make, whatever it runs."""
    environment.prepare_packages(checkout)
    _STEPS.clear()
    checkout.requirements(name).write_text("other==2\n", encoding="utf-8")
    environment.prepare_packages(checkout)
    assert _STEPS == ALL_STEPS


def test_changed_project_metadata_installs_the_project_alone(checkout: environment.Checkout) -> None:
    """A new command's script has to appear, without checking a hundred packages."""
    environment.prepare_packages(checkout)
    _STEPS.clear()
    _rewrite_pyproject(checkout, 'name = "sample"', 'name = "renamed"')
    environment.prepare_packages(checkout)
    assert _STEPS == ["Installing this project"]


def test_changed_lint_rule_installs_nothing(checkout: environment.Checkout) -> None:
    """Settings of tools change often and no installation depends on them."""
    environment.prepare_packages(checkout)
    _STEPS.clear()
    _rewrite_pyproject(checkout, "line-length = 120", "line-length = 100")
    environment.prepare_packages(checkout)
    assert _STEPS == []


@pytest.mark.parametrize("stamp", ["", "[]", "{", '{"packages": 1}'])
def test_damaged_stamp_runs_every_step(checkout: environment.Checkout, stamp: str) -> None:
    """An interrupted set-up is finished by the next one instead of being believed."""
    checkout.stamp.write_text(stamp, encoding="utf-8")
    environment.prepare_packages(checkout)
    assert _STEPS == ALL_STEPS


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("pyvenv.cfg", "version = 3.9.2\n", "it was made by Python 3.9.2"),
        ("pyvenv.cfg", "version_info = 3.10.1.final.0\n", "it was made by Python 3.10.1.final.0"),
        ("pyvenv.cfg", None, "it is not whole"),
        ("bin/python", None, "its Python is gone"),
        ("prepared.json", json.dumps({"place": "/elsewhere"}), "it was made in /elsewhere"),
    ],
)
def test_unusable_environment_is_made_again(
    checkout: environment.Checkout,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str | None,
    reason: str,
) -> None:
    """Packages of another minor version, or scripts that name another folder, do not work: nothing of them may stay."""
    environment.prepare_packages(checkout)
    (checkout.venv / file).unlink()
    if text is not None:
        (checkout.venv / file).write_text(text, encoding="utf-8")
    leftover = checkout.venv / "leftover"
    leftover.touch()
    monkeypatch.setattr(subprocess, "run", _fake_venv)
    _STEPS.clear()
    environment.prepare_packages(checkout)
    assert not leftover.exists()
    assert _STEPS == ALL_STEPS
    assert f"again: {reason}" in capsys.readouterr().err


def _fake_venv(command: Sequence[str], **_options: object) -> subprocess.CompletedProcess[str]:
    (Path(command[-1]) / "bin").mkdir(parents=True)
    return subprocess.CompletedProcess(command, 0, "", "")


def test_python_without_venv_gets_one_sentence(checkout: environment.Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian keeps venv in a package of its own, and its absence is the most frequent trouble of a fresh machine."""
    checkout.python.unlink()
    failed = subprocess.CompletedProcess((), 1, "no ensurepip", "")
    monkeypatch.setattr(subprocess, "run", lambda _command, **_: failed)
    with pytest.raises(environment.SetupError, match=r"install the package python3\.\d+-venv") as caught:
        environment.prepare_packages(checkout)
    assert caught.value.exit_code == EXIT_UNSUITABLE_MACHINE


def test_failed_step_shows_its_last_lines_and_names_the_log(tmp_path: Path) -> None:
    """The reason of a failed installation stands at its end; the whole of it is kept."""
    checkout = environment.Checkout(tmp_path)
    checkout.venv.mkdir()
    command = [sys.executable, "-c", "print('first'); print('no such package'); raise SystemExit(3)"]
    with pytest.raises(environment.SetupError) as caught:
        environment.run_step(checkout, "Installing", command)
    assert "Installing failed" in str(caught.value)
    assert str(caught.value).endswith("no such package")
    assert checkout.log.read_text(encoding="utf-8") == "first\nno such package\n"


def test_step_says_what_it_did_and_how_long_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody waits in front of it."""
    checkout = environment.Checkout(tmp_path)
    checkout.venv.mkdir()
    environment.run_step(checkout, "Installing", [sys.executable, "-c", "pass"])
    assert capsys.readouterr().err == "Installing ...\nInstalling: done in 0 s\n"


def test_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped option must not be a set-up that lacks what it asked for."""
    assert environment.main(["--jvm"]) == EXIT_UNSUITABLE_MACHINE
    assert "not --jvm" in capsys.readouterr().err


def _rewrite_pyproject(checkout: environment.Checkout, old: str, new: str) -> None:
    path = checkout.root / "pyproject.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
