"""The wheel in an environment of its own, as users install it."""

import re
import subprocess
import sys
import venv
from pathlib import Path

from tests.helpers.readme import ROOT


class CleanInstall:
    """An environment that holds the wheel and nothing of this checkout."""

    def __init__(self, folder: Path, wheel: Path, extras: str = "") -> None:
        """Install the wheel with its dependencies, in the versions that this project pins."""
        self.folder = folder
        self._programs = folder / "environment" / "bin"
        venv.create(folder / "environment", with_pip=False)
        pins = folder / "pins.txt"
        listed = (ROOT / "infra" / "python" / "requirements.txt").read_text(encoding="utf-8")
        pins.write_text("\n".join(re.findall(r"^(\S+==[^\\\n]+)", listed, re.MULTILINE)), encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--python", str(self._programs / "python"), "install", "--quiet"]
        command = [*pip, "--prefer-binary", "--constraint", str(pins), f"{wheel}{extras}"]
        installed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert installed.returncode == 0, installed.stdout + installed.stderr

    @property
    def python(self) -> str:
        """Its Python."""
        return str(self._programs / "python")

    @property
    def command(self) -> str:
        """Its ``controlplane``."""
        return str(self._programs / "controlplane")
