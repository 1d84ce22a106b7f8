"""What documentation and docstrings name in this tree, and what of that is not there. Nothing is imported for it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.architecture.tidy import ROOT

_PACKAGES = ("benchmarks", "controlplane", "examples", "streaming", "tests")
_FOLDERS = (*_PACKAGES, "docs", "infra", "schemas")
_PATH = re.compile(rf"`((?:{'|'.join(_FOLDERS)})/[\w./-]*)`")
_ONLY_IN_WHEELS = "controlplane/_resources"
_LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")
_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?([\w.]+)`")


def missing_paths(text: str) -> list[str]:
    """Paths in backticks, from the root of the tree, at which nothing lies."""
    return [path for path in _PATH.findall(text) if not (ROOT / path).exists() and path != _ONLY_IN_WHEELS]


def broken_links(page: Path, text: str) -> list[str]:
    """Links of a Markdown page to files that are not there."""
    return [link for link in _LINK.findall(text) if not (page.parent / link).exists()]


def unknown_names(source: str) -> list[str]:
    """Names in roles such as ``:class:`` that neither this source nor the module that they begin with has."""
    tree = ast.parse(source)
    return [name for name in _ROLE.findall(source) if not _is_known(tree, name)]


def _is_known(tree: ast.Module, name: str) -> bool:
    """Whether a name means something there. A word alone may be anything in the file; other packages are believed."""
    parts = name.split(".")
    if parts[0] in _PACKAGES:
        return _is_in_tree(parts)
    if len(parts) == 1:
        return name in set(_every_name(tree))
    return _has(tree, parts) or find_spec(parts[0]) is not None


def _is_in_tree(parts: list[str]) -> bool:
    """Whether a dotted name is a module of ours, or something in one."""
    for length in range(len(parts), 0, -1):
        module = _module(".".join(parts[:length]))
        if module is not None:
            return length == len(parts) or _has(module, parts[length:])
    return False


def _has(scope: ast.Module | ast.ClassDef, parts: list[str]) -> bool:
    """Whether a module or class has the first of the names, and that one the others; bases are believed."""
    found = _named(scope).get(parts[0])
    if found is None:
        return False
    if isinstance(found, list):
        return found[0] not in _PACKAGES or _is_in_tree([*found, *parts[1:]])
    if len(parts) == 1 or not isinstance(found, ast.ClassDef):
        return len(parts) == 1
    return _has(found, parts[1:]) or any(ast.unparse(base) not in {"Enum", "Protocol"} for base in found.bases)


def _named(scope: ast.Module | ast.ClassDef) -> dict[str, ast.AST | list[str]]:
    """What a module or a class names itself: each with its definition, or with where it is imported from."""
    names: dict[str, ast.AST | list[str]] = {}
    for node in ast.walk(scope) if isinstance(scope, ast.ClassDef) else scope.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names[node.name] = node
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: [*node.module.split("."), alias.name] for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= dict.fromkeys((name for target in targets for name in _every_name(target)), node)
    return names


def _every_name(tree: ast.AST) -> Iterator[str]:
    """Every name that is defined, imported, assigned or taken as an argument anywhere in it."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case _:
                pass


@cache
def _module(name: str) -> ast.Module | None:
    path = ROOT.joinpath(*name.split("."))
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return ast.parse(file.read_text(encoding="utf-8"))
    return ast.parse("") if path.is_dir() else None
