"""Rules about the text of the tree that no linter knows, each a function from a source to what is wrong with it."""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE_LINES = 400
LONGEST_FUNCTION_LINES = 60

CORE_BANNED_MODULES = frozenset(
    {
        "asyncio",
        "concurrent",
        "datetime",
        "logging",
        "multiprocessing",
        "os",
        "random",
        "secrets",
        "socket",
        "subprocess",
        "threading",
        "time",
        "uuid",
    }
)
"""What a pure core cannot have: clocks, randomness, the machine, threads, logs."""

ADAPTER_MODULES = {"confluent_kafka": "kafka_", "redis": "redis_"}
"""A client library -> how the names of the adapters start that may import it."""

_SKIPPED_FOLDERS = frozenset({"build", "data", "demo-data", "dist", "metastore_db", "node_modules", "spark-warehouse"})
_HIDDEN_FOLDERS_OF_OURS = frozenset({".ci", ".github"})
_TEXT_SUFFIXES = frozenset(
    {"", ".avsc", ".c", ".cfg", ".in", ".ini", ".java", ".js", ".json", ".md", ".properties", ".py", ".sh", ".sql"}
    | {".toml", ".txt", ".xml", ".yaml", ".yml"}
)
# Written in pieces, so that this file passes its own rule.
_REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"),
        ("registry", "npmjs", "org"),
        ("index", "docker", "io"),
        ("proxy", "golang", "org"),
    )
)
_MACHINE_PATH = re.compile(r"(?<![\w.$}-])/(?:" + "|".join(("wo" + "rk", "ro" + "ot", "home/[a-z]")) + r")/?[\w.-]*/")


def text_files() -> Iterator[Path]:
    """Every text file of the tree, build products and environments left out.

    In a worktree of git ``.git`` is a file, which names the folder of the repository.
    """
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if _is_ours(name))
        for name in sorted(names):
            path = Path(folder) / name
            if name != ".git" and path.suffix in _TEXT_SUFFIXES and path.is_file():
                yield path


def python_files(*folders: str) -> list[Path]:
    """The Python files below these folders of the tree, or of the whole tree."""
    found = [path for path in text_files() if path.suffix == ".py"]
    return [path for path in found if not folders or path.relative_to(ROOT).parts[0] in folders]


def imported_modules(source: str) -> set[str]:
    """The first names of all modules that a source imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


def misplaced_clients(file_name: str, source: str) -> list[str]:
    """The client libraries that an adapter of this name must not import."""
    imported = imported_modules(source)
    return [
        module for module, prefix in ADAPTER_MODULES.items() if module in imported and not file_name.startswith(prefix)
    ]


def long_functions(source: str, longest: int = LONGEST_FUNCTION_LINES) -> list[str]:
    """The functions with more lines than allowed, decorators and docstring included."""
    return [
        f"{node.name} (line {node.lineno}) has {lines} lines"
        for node in _functions(source)
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > longest
    ]


def asserts_of_literals(source: str) -> list[str]:
    """Assertions one of whose outcomes is a literal, which is true or false whatever is tested.

    ``assert a == b if c else (1, 2)`` means ``assert (a == b) if c else (1, 2)``.
    """
    literals = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Constant)
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assert)
        and isinstance(node.test, ast.IfExp)
        and isinstance(node.test.orelse, literals) | isinstance(node.test.body, literals)
    ]


def undocumented_tests(source: str) -> list[str]:
    """The tests that do not open with a sentence on what they check."""
    return [
        f"{node.name} (line {node.lineno})"
        for node in _functions(source)
        if node.name.startswith("test_") and not (ast.get_docstring(node) or "").strip()
    ]


def foreign_names(text: str) -> list[str]:
    """Package registries and paths of one machine: a tree that names them works on that machine only."""
    hosts = [host for host in _REGISTRY_HOSTS if host in text]
    return hosts + [match.group() for match in _MACHINE_PATH.finditer(text)]


def _is_ours(folder_name: str) -> bool:
    if folder_name.startswith("."):
        return folder_name in _HIDDEN_FOLDERS_OF_OURS
    return folder_name not in _SKIPPED_FOLDERS and folder_name != "__pycache__"


def _functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
