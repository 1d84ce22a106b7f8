"""Compiling and running the reader in ``examples/java``."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark

from controlplane.embedded.jars import broker_jars
from controlplane.embedded.java import find_java

SOURCES = Path(__file__).parents[2] / "examples" / "java"
_COMPILE_WITHIN_S = 120


class JavaReader:
    """The compiled example with the jars that it needs: the broker's, and Avro of those that pyspark carries."""

    def __init__(self, folder: Path) -> None:
        """Compile into a folder; a warning of the compiler is an error."""
        jars = [*broker_jars(), *(Path(pyspark.__file__).parent / "jars").glob("avro-1*.jar")]
        self._java = str(find_java().executable)
        self._class_path = os.pathsep.join(str(path) for path in (folder, *jars))
        done = self._call(
            ["--module", "jdk.compiler/com.sun.tools.javac.Main", "-Xlint:all", "-Werror", "-d", str(folder)],
            ["-cp", self._class_path, *(str(path) for path in sorted(SOURCES.glob("*.java")))],
            _COMPILE_WITHIN_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def run(
        self, name: str, arguments: Sequence[str], within_s: int, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """The output and the exit status of a main class for these arguments and this standard input."""
        return self._call(["-cp", self._class_path, name], arguments, within_s, given)

    def _call(
        self, options: Sequence[str], arguments: Sequence[str], within_s: int, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        command = [self._java, *options, *arguments]
        return subprocess.run(
            command, input=given, capture_output=True, encoding="utf-8", timeout=within_s, check=False
        )
