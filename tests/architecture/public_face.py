"""What users' code imports of this package, and what of that is not public."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PUBLIC_MODULES = (
    "controlplane",
    "controlplane.bundle_rules",
    "controlplane.node",
    "controlplane.routing",
    "controlplane.slot_policies",
    "controlplane.testing",
)

_BLOCK = re.compile(r"^ *```python[^\n]*\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)


def snippets(page: str) -> list[str]:
    """The Python blocks of a Markdown page."""
    return [found["text"] for found in _BLOCK.finditer(page)]


def user_code(root: Path) -> dict[str, str]:
    """Everything that users copy from: the examples, and each Python block of a page, with where it stands."""
    found = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in (root / "examples").rglob("*.py")
    }
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "examples").rglob("*.md")]
    for page in pages:
        blocks = enumerate(snippets(page.read_text(encoding="utf-8")), start=1)
        found |= {f"{page.relative_to(root)}, Python block {number}": text for number, text in blocks}
    return found


def imports_of_internals(source: str) -> list[str]:
    """The imports of modules of this package that are not public, and of names that their ``__all__`` leaves out."""
    return list(_offenders(ast.parse(source)))


def _offenders(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            yield from (name for name in names if _is_ours(name) and name not in PUBLIC_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module and _is_ours(node.module):
            for alias in node.names:
                if not _is_public(node.module, alias.name):
                    yield f"{node.module}.{alias.name}"


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in {"controlplane", "streaming"}


def _is_public(module: str, name: str) -> bool:
    if module not in PUBLIC_MODULES:
        return False
    return f"{module}.{name}" in PUBLIC_MODULES or name in import_module(module).__all__
