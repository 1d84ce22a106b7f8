"""Runs the Ivy inside pyspark, which resolves and downloads the jars of one configuration of ``infra/jvm/ivy.xml``."""

import importlib.util
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from controlplane.embedded.java import find_java
from controlplane.errors import MissingExtraError, PrerequisiteError

IVY_SETTINGS_VARIABLE = "CONTROLPLANE_IVY_SETTINGS"
"""The environment variable with the path of an ivysettings.xml, for networks that reach only a mirror of their own."""

_DEADLINE_S = 1_200.0
_PROGRESS_INTERVAL_S = 3.0
_POLL_INTERVAL_S = 0.2
_TAIL_LINES = 15


def run_ivy(ivy_xml: Path, configuration: str, into: Path, ivy_cache: Path, report: Callable[[str], None]) -> None:
    """Put every jar of one configuration, dependencies included, into a folder.

    Args:
        ivy_xml: the file that names the jars.
        configuration: ``broker`` or ``spark``.
        into: an existing empty folder; Ivy's own log is written there too, as ``ivy.log``.
        ivy_cache: Ivy's cache of poms and jars; what an interrupted run fetched is not fetched again.
        report: called with a line of progress every few seconds.

    Raises:
        PrerequisiteError: there is no Java, or Ivy failed; the message contains the end of Ivy's output.
        MissingExtraError: pyspark is not installed.
    """
    command = [
        str(find_java().executable),
        "-Xmx256m",
        "-jar",
        str(_ivy_jar()),
        *_settings_arguments(),
        *("-cache", str(ivy_cache)),
        *("-ivy", str(ivy_xml)),
        *("-confs", configuration),
        *("-types", "jar", "bundle"),
        *("-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    log_path = into / "ivy.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait(process, configuration, log_path, report)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    if process.returncode != 0:
        tail = "\n".join(log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
        message = (
            f"the jars of {configuration} could not be fetched (Ivy ended with {process.returncode}). "
            f"Behind a proxy set JAVA_TOOL_OPTIONS, with a mirror {IVY_SETTINGS_VARIABLE}. Its output:\n{tail}"
        )
        raise PrerequisiteError(message)


def _wait(
    process: "subprocess.Popen[bytes]", configuration: str, log_path: Path, report: Callable[[str], None]
) -> None:
    began = time.monotonic()
    next_report = began + _PROGRESS_INTERVAL_S
    while process.poll() is None:
        now = time.monotonic()
        if now - began > _DEADLINE_S:
            message = f"fetching the jars of {configuration} took over {_DEADLINE_S:.0f} s: is the network slow?"
            raise PrerequisiteError(message)
        if now >= next_report:
            next_report = now + _PROGRESS_INTERVAL_S
            log = log_path.read_bytes()
            resolved, fetched = log.count(b"\tfound "), log.count(b"[SUCCESSFUL ]")
            report(f"jars of {configuration}: {resolved} resolved, {fetched} downloaded, {now - began:.0f} s")
        time.sleep(_POLL_INTERVAL_S)


def _settings_arguments() -> tuple[str, ...]:
    settings = os.environ.get(IVY_SETTINGS_VARIABLE)
    return ("-settings", settings) if settings else ()


def _ivy_jar() -> Path:
    # Located without importing pyspark: only `streaming` may import it.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingExtraError("embedded", "fetching jars with the Ivy inside pyspark")
    jars = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not jars:
        message = f"pyspark in {Path(spec.origin).parent} carries no Ivy jar: reinstall pyspark"
        raise PrerequisiteError(message)
    return jars[-1]
