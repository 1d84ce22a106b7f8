"""Which modules a running program reaches, and which public names no code of the product uses."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tests.architecture.tidy import ROOT

PRODUCT: Final = ("controlplane", "streaming")


@cache
def trees() -> Mapping[str, ast.Module]:
    """The parsed modules of the product by name."""
    files = {path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")}
    return {_module(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(files)}


def reached(roots: Iterable[str], *, except_for: tuple[str, ...]) -> set[str]:
    """The modules that the roots import, directly or through others, without following an import of ``except_for``."""
    found: set[str] = set()
    waiting = [root for root in roots if not within(root, except_for)]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += (each for each in _imported(module) if not within(each, except_for))
    return found


def within(module: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of these, or in one of them."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def unused_names(package: str) -> set[str]:
    """The public functions, methods and classes of a package that no code of the product uses: ``module.name`` in it.

    A function or class is used where it is imported from its module, or named in it. A method is used where any code
    reads an attribute of its name.
    """
    attributes = {each for name in trees() for each in _attributes(name)}
    found: set[str] = set()
    for module, tree in trees().items():
        if within(module, (package,)):
            used = _named(tree) | _names_imported_from(module)
            unused = [each.name for each in _public(tree.body) if each.name not in used]
            for each in tree.body:
                if isinstance(each, ast.ClassDef):
                    unused += [method.name for method in _public(each.body) if method.name not in attributes]
            found |= {f"{module}.{name}".removeprefix(f"{package}.") for name in unused}
    return found


def _public(body: Iterable[ast.stmt]) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def _named(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@cache
def _imports() -> Mapping[str, set[str]]:
    """By module, the names that others import from it."""
    names: dict[str, set[str]] = {}
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names.setdefault(str(node.module), set()).update(each.name for each in node.names)
    return names


def _names_imported_from(module: str) -> set[str]:
    """The names that others import, and the attributes that they read where they import the module as a whole."""
    package, _, name = module.rpartition(".")
    names = set(_imports().get(module, ()))
    if name in _imports().get(package, ()):
        names |= {each for other in trees() if module in _imported(other) for each in _attributes(other)}
    return names


@cache
def _attributes(module: str) -> frozenset[str]:
    return frozenset(node.attr for node in ast.walk(trees()[module]) if isinstance(node, ast.Attribute))


def _module(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


@cache
def _imported(module: str) -> frozenset[str]:
    """The modules of the product that a module imports."""
    found: set[str] = set()
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            submodules = {f"{node.module}.{each.name}" for each in node.names} & trees().keys()
            found |= submodules or {str(node.module)}
    return frozenset(found & trees().keys())
