"""Packs the pipeline with its libraries into one archive, which spark-submit ships to the executors.

    pack.py ARCHIVE

The archive holds what ``infra/python/pipeline.txt`` names, this checkout's own packages, and the Java libraries that
spark-submit takes. It lacks pyspark, which is a part of every Spark. Its compiled libraries are those of
this machine's platform and of the Python that runs this program: executors need the same.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from controlplane.embedded import jars
from controlplane.errors import ControlPlaneError, PrerequisiteError

ROOT: Final = Path(__file__).resolve().parents[2]
_JARS: Final = jars.PACKED_SPARK_JARS.relative_to(ROOT)
_LIBRARIES: Final = ROOT / "infra" / "python" / "pipeline.txt"
_PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps")
_OF_ONE_MACHINE: Final = "direct_url.json"
"""In it pip remembers the path from which it has installed a wheel."""
_OLDEST_TIME: Final = (1980, 1, 1, 0, 0, 0)


def pack(archive: Path) -> None:
    """Write the archive; takes about a minute, and as much space in the temporary folder as it has unpacked.

    Args:
        archive: the file to write; an existing one is replaced.

    Raises:
        PrerequisiteError: a library cannot be fetched or has another hash than the list says, or the wheel cannot be
            built.
        MissingExtraError: jars have to be fetched, and pyspark is not installed.
    """
    spark_jars = jars.spark_jars()
    with tempfile.TemporaryDirectory(prefix="pipeline-env-") as temporary:
        wheels, content = Path(temporary) / "wheels", Path(temporary) / "content"
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)])
        # Two calls: pip knows no hash of what has just been built, and with --require-hashes would refuse it.
        # Without compiled bytecode, because unpacking changes the times by which Python knows that it is current.
        into = ["--target", str(content), "--no-compile", "--only-binary", ":all:"]
        _run([*_PIP, *into, "--require-hashes", "--requirement", str(_LIBRARIES)])
        _run([*_PIP, *into, *map(str, wheels.glob("*.whl"))])
        shutil.rmtree(content / "bin", ignore_errors=True)  # programs whose first lines name this machine's Python
        (content / _JARS).mkdir(parents=True)
        for file in (*spark_jars, spark_jars[0].with_name(jars.MARKER_NAME)):
            shutil.copy(file, content / _JARS)
        archive.parent.mkdir(parents=True, exist_ok=True)
        write_archive(content, archive)


def write_archive(content: Path, archive: Path) -> None:
    """Zip a folder's files. The same files give the same bytes, whenever and wherever they were written.

    The archive appears when it is whole: a run that is interrupted leaves the former one.
    """
    partial = archive.with_name(f"{archive.name}.partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(each for each in content.rglob("*") if each.is_file() and each.name != _OF_ONE_MACHINE):
            entry = zipfile.ZipInfo(path.relative_to(content).as_posix(), _OLDEST_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            with path.open("rb") as source, packed.open(entry, "w") as target:
                shutil.copyfileobj(source, target)
    partial.replace(archive)


def _run(command: list[str]) -> None:
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise PrerequisiteError(f"{' '.join(command[2:])} failed:\n{ended.stdout}{ended.stderr}")


def main(arguments: list[str]) -> int:
    """Write the archive that is named, and say what it needs; returns the exit status."""
    if len(arguments) != 1:
        sys.stderr.write("pack.py takes one argument: the archive to write, such as dist/pipeline-env.zip\n")
        return 2
    archive = Path(arguments[0])
    try:
        pack(archive)
    except ControlPlaneError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB, for Python {version} on {sys.platform}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
