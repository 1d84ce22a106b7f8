"""Finds a Java that both Kafka and Spark support."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controlplane.errors import PrerequisiteError

SUPPORTED_MAJOR_VERSIONS = (17, 21)
"""The versions that Spark 4.1 supports; Kafka 4 needs 17 or newer. Spark refuses versions that are newer than these."""

JAVA_HOME_VARIABLE = "CONTROLPLANE_JAVA_HOME"
"""The environment variable that takes precedence over JAVA_HOME and everything else."""

_INSTALL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk@*/libexec/openjdk.jdk/Contents/Home",
)
_VERSION = re.compile(r'version[= ]"?(?:1\.)?(\d+)', re.IGNORECASE)
_ASK_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Java:
    """One Java installation.

    Attributes:
        home: its folder, the value for JAVA_HOME.
        major_version: 17 for 17.0.15.
    """

    home: Path
    major_version: int

    @property
    def executable(self) -> Path:
        """The ``java`` program."""
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The first suitable Java of CONTROLPLANE_JAVA_HOME, JAVA_HOME, PATH and the usual folders.

    Raises:
        PrerequisiteError: there is none, or CONTROLPLANE_JAVA_HOME names an unsuitable one.
    """
    wanted = " or ".join(str(version) for version in SUPPORTED_MAJOR_VERSIONS)
    chosen = os.environ.get(JAVA_HOME_VARIABLE)
    if chosen:
        java = inspect_home(Path(chosen))
        if java is None or java.major_version not in SUPPORTED_MAJOR_VERSIONS:
            found = "no Java" if java is None else f"Java {java.major_version}"
            message = f"{JAVA_HOME_VARIABLE} is {chosen}, which holds {found}: Java {wanted} is needed"
            raise PrerequisiteError(message)
        return java
    seen: list[Java] = []
    for home in _candidate_homes():
        java = inspect_home(home)
        if java is None:
            continue
        if java.major_version in SUPPORTED_MAJOR_VERSIONS:
            return java
        seen.append(java)
    others = ", ".join(f"{java.major_version} in {java.home}" for java in seen) or "none at all"
    message = f"Java {wanted} is needed (found: {others}): install one or set {JAVA_HOME_VARIABLE} to its folder"
    raise PrerequisiteError(message)


def inspect_home(home: Path) -> Java | None:
    """The Java in this folder; None if there is none that runs."""
    executable = home / "bin" / "java"
    if not os.access(executable, os.X_OK):
        return None
    release = home / "release"
    if release.is_file():
        # Reading the release file saves a start of the JVM.
        match = _VERSION.search(release.read_text(encoding="utf-8", errors="replace"))
        if match:
            return Java(home, int(match.group(1)))
    try:
        answer = subprocess.run(
            [str(executable), "-version"], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return Java(home, int(match.group(1))) if match and answer.returncode == 0 else None


def _candidate_homes() -> Iterator[Path]:
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        yield Path(java_home)
    on_path = shutil.which("java")
    if on_path:
        # The program on PATH is usually a chain of links; the home is that of the last target.
        yield Path(on_path).resolve().parent.parent
    for pattern in _INSTALL_FOLDERS:
        yield from sorted(Path("/").glob(pattern.lstrip("/")))
