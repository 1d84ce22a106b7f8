"""Choosing a Java: machines have several, and Spark runs on some of them only."""

import os
from pathlib import Path

import pytest

from controlplane.embedded import java
from controlplane.embedded.java import JAVA_HOME_VARIABLE, Java, find_java
from controlplane.errors import PrerequisiteError


def make_java(home: Path, version: str, *, release_file: bool = True) -> Path:
    """A Java installation that can only tell its version."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    if release_file:
        text = f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\nJAVA_VERSION_DATE="2025-04-15"\n'
        (home / "release").write_text(text, encoding="utf-8")
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which no Java is found but those that the test makes."""
    monkeypatch.delenv(JAVA_HOME_VARIABLE, raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(java, "_INSTALL_FOLDERS", (f"{tmp_path}/jvm/*",))


@pytest.mark.parametrize(
    ("version", "release_file", "major"),
    [("17.0.15", True, 17), ("21.0.3", False, 21), ("17", False, 17), ("21-ea", True, 21)],
)
def test_version_is_read(tmp_path: Path, version: str, major: int, *, release_file: bool) -> None:
    """Both ways of asking, the release file and the program, know all ways of writing a version."""
    home = make_java(tmp_path / "jvm" / "a", version, release_file=release_file)
    assert find_java() == Java(home, major)


def test_unsuitable_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many machines have JAVA_HOME at the newest Java, which Spark refuses, beside one that it takes."""
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "newest", "25.0.3")))
    old = make_java(tmp_path / "old", "1.8.0_402")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(old / "bin" / "java")
    suitable = make_java(tmp_path / "jvm" / "b", "17.0.15")
    assert find_java() == Java(suitable, 17)
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "mine", "21.0.3")))
    assert find_java() == Java(tmp_path / "mine", 21)


def test_java_on_path_is_followed_to_its_home(tmp_path: Path) -> None:
    """The program on PATH is a link; Spark needs the home behind it."""
    home = make_java(tmp_path / "elsewhere", "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java() == Java(home, 17)


def test_chosen_java_is_taken_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who names a Java must get that one or an error, never another one in silence."""
    make_java(tmp_path / "jvm" / "c", "17.0.15")
    chosen = make_java(tmp_path / "chosen", "21.0.3")
    monkeypatch.setenv(JAVA_HOME_VARIABLE, str(chosen))
    assert find_java() == Java(chosen, 21)
    monkeypatch.setenv(JAVA_HOME_VARIABLE, str(make_java(tmp_path / "newest", "25.0.3")))
    with pytest.raises(PrerequisiteError, match="holds Java 25: Java 17 or 21 is needed"):
        find_java()
    monkeypatch.setenv(JAVA_HOME_VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(PrerequisiteError, match="holds no Java"):
        find_java()


def test_no_suitable_java_says_what_was_found(tmp_path: Path) -> None:
    """One sentence has to be enough to mend it: what is needed, what is there, where to name another."""
    with pytest.raises(PrerequisiteError, match="found: none at all"):
        find_java()
    home = make_java(tmp_path / "jvm" / "d", "25.0.3")
    with pytest.raises(PrerequisiteError) as refused:
        find_java()
    assert str(refused.value) == (
        f"Java 17 or 21 is needed (found: 25 in {home}): install one or set {JAVA_HOME_VARIABLE} to its folder"
    )


def test_program_that_does_not_run_is_no_java(tmp_path: Path) -> None:
    """A stub that only offers to install Java, as on macOS, must count as none."""
    home = make_java(tmp_path / "jvm" / "e", "17.0.15", release_file=False)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    assert os.access(home / "bin" / "java", os.X_OK)
    with pytest.raises(PrerequisiteError, match="none at all"):
        find_java()
