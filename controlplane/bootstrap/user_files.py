"""Runs Python files of users, each as a module of its own."""

import importlib.util
import sys
import traceback
from pathlib import Path

from controlplane.errors import ConfigurationError


def run_file(path: Path, kind: str) -> object:
    """The module that a file makes. The file is run in this process: trust it as you trust this package.

    Args:
        path: the file, whose name ends with ``.py``.
        kind: what the file is, as a word in the module's name.

    Raises:
        ConfigurationError: there is no such file, or it raises an exception. The message names the file and the line.
    """
    name = f"{kind} {path.resolve().with_suffix('')}".replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, path) if path.suffix == ".py" and path.is_file() else None
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path}: there is no such Python file (its name has to end with .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks its own module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(path)]
        place = f", line {lines[-1]}" if lines else ""
        raise ConfigurationError(f"{path}{place}: {type(error).__name__}: {error}") from error
    return module
