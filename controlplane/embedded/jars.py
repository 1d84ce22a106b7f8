"""The jars of the broker and of the pipeline, fetched once and kept in a cache folder.

``infra/jvm/ivy.xml`` names them. They are put into ``<cache>/jars/<hash of ivy.xml>/broker`` and ``.../spark``. The
cache is ``~/.cache/controlplane`` unless CONTROLPLANE_CACHE_DIR is set. A folder counts only with its marker file,
which lists every jar with its size, so that an interrupted or damaged download is repeated. Run
``python -m controlplane.embedded.jars [broker] [spark]`` to fetch them ahead of time.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from controlplane.embedded.ivy import run_ivy
from controlplane.errors import ControlPlaneError, PrerequisiteError
from controlplane.resources import resource_path

JarSet = Literal["broker", "spark"]
JAR_SETS: Mapping[str, JarSet] = {"broker": "broker", "spark": "spark"}

IVY_FILE = "infra/jvm/ivy.xml"
CACHE_VARIABLE = "CONTROLPLANE_CACHE_DIR"
MARKER_NAME = "complete.json"

SPARK_KEPT_PREFIXES = (
    "commons-pool2-",
    "delta-",
    "kafka-clients-",
    "spark-avro_",
    "spark-sql-kafka-",
    "spark-token-provider-kafka-",
    "unitycatalog-",
)
"""The jars that pyspark does not contain. The resolved set also has older jackson, parquet and RoaringBitmap jars,
which must not be used beside Spark's own."""

PACKED_SPARK_JARS = Path(__file__).resolve().parents[1] / "_resources" / "jars" / "spark"
"""Where an archive of ``make pipeline-env`` has them, with their marker file; no other installation has the folder."""

Reporter = Callable[[str], None]
Fetcher = Callable[[Path, JarSet, Path, Path, Reporter], None]
"""Fills a folder with the jars of one set: :func:`controlplane.embedded.ivy.run_ivy`, or a test's replacement."""


def report_to_stderr(line: str) -> None:
    """The default reporter: one line on standard error."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def cache_folder() -> Path:
    """The folder for fetched files: CONTROLPLANE_CACHE_DIR or ``~/.cache/controlplane``."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "controlplane"


def broker_jars(report: Reporter = report_to_stderr) -> tuple[Path, ...]:
    """The jars of Kafka; fetched if they are missing (45 MB, about 40 s).

    Raises:
        PrerequisiteError: they cannot be fetched; the message says why.
        MissingExtraError: pyspark, whose Ivy fetches them, is not installed.
    """
    return JarCache(cache_folder(), resource_path(IVY_FILE), report=report).jars("broker")


def spark_jars(report: Reporter = report_to_stderr) -> tuple[Path, ...]:
    """The jars that the pipeline adds to pyspark; fetched if they are missing (25 MB, about 30 s).

    An archive of ``make pipeline-env`` has its own, and fetches none.

    Raises:
        PrerequisiteError: they cannot be fetched; the message says why.
        MissingExtraError: pyspark, whose Ivy fetches them, is not installed.
    """
    packed = _whole_jars(PACKED_SPARK_JARS)
    if packed is not None:
        return packed
    return JarCache(cache_folder(), resource_path(IVY_FILE), report=report).jars("spark")


class JarCache:
    """A cache folder, one sub-folder for each content of ``ivy.xml``.

    Args:
        folder: the cache, see :func:`cache_folder`.
        ivy_xml: the file that names the jars.
        fetch: fills a folder with the jars of one set.
        report: called with a line every few seconds while something is fetched.
    """

    def __init__(
        self, folder: Path, ivy_xml: Path, *, fetch: Fetcher = run_ivy, report: Reporter = report_to_stderr
    ) -> None:
        self._folder = folder / "jars"
        self._ivy_xml = ivy_xml
        self._fetch = fetch
        self._report = report

    def jars(self, jar_set: JarSet) -> tuple[Path, ...]:
        """The jars of one set, sorted by name; fetched if they are missing or incomplete.

        Two processes may call this at once: the second waits and uses what the first fetched.

        Raises:
            PrerequisiteError: they cannot be fetched, or the cache folder cannot be written.
            MissingExtraError: pyspark, whose Ivy fetches them, is not installed.
        """
        folder = self._folder / hashlib.sha256(self._ivy_xml.read_bytes()).hexdigest()[:16] / jar_set
        whole = _whole_jars(folder)
        if whole is not None:
            return whole
        with self._lock(jar_set):
            whole = _whole_jars(folder)
            if whole is None:
                self._fill(folder, jar_set)
                whole = _whole_jars(folder)
        if whole is None:
            message = f"the jars in {folder} changed while they were being written: remove the folder and try again"
            raise PrerequisiteError(message)
        return whole

    def _fill(self, folder: Path, jar_set: JarSet) -> None:
        incoming = folder.with_name(f"{jar_set}.incoming")
        for leftover in (incoming, folder):
            if leftover.exists():
                shutil.rmtree(leftover)
        incoming.mkdir(parents=True)
        self._report(f"fetching the jars of {jar_set} into {folder}")
        self._fetch(self._ivy_xml, jar_set, incoming, self._folder / "ivy-cache", self._report)
        sizes = {}
        for path in sorted(incoming.iterdir()):
            if path.suffix == ".jar" and (jar_set == "broker" or path.name.startswith(SPARK_KEPT_PREFIXES)):
                sizes[path.name] = path.stat().st_size
            elif path.suffix == ".jar":
                path.unlink()
        if not sizes:
            message = f"fetching the jars of {jar_set} brought none: see {incoming / 'ivy.log'}"
            raise PrerequisiteError(message)
        (incoming / MARKER_NAME).write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")
        incoming.rename(folder)
        self._report(f"{len(sizes)} jars of {jar_set}, {sum(sizes.values()) / 1e6:.0f} MB, are in {folder}")

    @contextmanager
    def _lock(self, jar_set: JarSet) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = (self._folder / "lock").open("wb")
        except OSError as error:
            message = f"the cache folder {self._folder} cannot be written ({error}): set {CACHE_VARIABLE} to another"
            raise PrerequisiteError(message) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._report(f"another process is fetching jars; waiting for it before looking for those of {jar_set}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _whole_jars(folder: Path) -> tuple[Path, ...] | None:
    """The jars that the folder's marker lists; None if there is no marker, or a jar differs from it."""
    try:
        sizes: dict[str, int] = json.loads((folder / MARKER_NAME).read_text(encoding="utf-8"))
        jars = tuple(folder / name for name in sorted(sizes))
        return jars if all(jar.stat().st_size == sizes[jar.name] for jar in jars) else None
    except (FileNotFoundError, ValueError):
        return None


def main(arguments: Sequence[str]) -> int:
    """Fetch the named sets, or both if none is named.

    Returns:
        The exit code: 0, 1 when fetching failed, 2 for a wrong name.
    """
    unknown = [name for name in arguments if name not in JAR_SETS]
    if unknown:
        report_to_stderr(f"unknown jar set {unknown[0]!r}: use {' or '.join(JAR_SETS)}")
        return 2
    cache = JarCache(cache_folder(), resource_path(IVY_FILE))
    try:
        for name in arguments or JAR_SETS:
            jars = cache.jars(JAR_SETS[name])
            report_to_stderr(f"{name}: {len(jars)} jars in {jars[0].parent}")
    except ControlPlaneError as error:
        report_to_stderr(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
