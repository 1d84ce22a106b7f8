"""Puts a bug into the running code: a function is compiled again from its source with one text in place of another."""

import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """One bug.

    Attributes:
        bug: what is wrong, in words.
        target: the function, as ``module:function`` or ``module:Class.method``.
        right: a text that occurs in its source once.
        wrong: the text that replaces it.
        recreated: it shows where the decision log is recreated, which ordinary runs leave alone.
        scene: where it shows, if seeds meet it too seldom.
        seed: one that has shown it, tried before all others, where many do not. A change of the code or of the faults
            may end that; then it only takes longer.
    """

    bug: str
    target: str
    right: str
    wrong: str
    recreated: bool = False
    scene: Callable[[], None] | None = None
    seed: int | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within the block the bug is active for all callers of the function."""
        module_name, _, path = self.target.partition(":")
        module = importlib.import_module(module_name)
        owner: Any = module
        *outer, name = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        original = inspect.getattr_static(owner, name)
        changed = self._compiled(module, original, name)
        places = [(owner, name)] if outer else list(_importers(original))
        for holder, attribute in places:
            setattr(holder, attribute, changed)
        try:
            yield
        finally:
            for holder, attribute in places:
                setattr(holder, attribute, original)

    def _compiled(self, module: ModuleType, original: Any, name: str) -> Any:  # noqa: ANN401 - function or property
        function: Any = original.fget if isinstance(original, property) else original
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.right) != 1:
            raise ValueError(f"mutant {self.bug!r}: {self.right!r} stands {source.count(self.right)} times in {name}")
        scope: dict[str, Any] = {}
        exec(compile(source.replace(self.right, self.wrong), f"<mutant of {name}>", "exec"), vars(module), scope)  # noqa: S102 - our own text
        return scope[name]


def _importers(function: object) -> Iterator[tuple[ModuleType, str]]:
    """Everywhere where a function is known by a name of its module's or of another one's."""
    for module in list(sys.modules.values()):
        if module.__name__.partition(".")[0] in {"controlplane", "tests"}:
            yield from ((module, name) for name, value in list(vars(module).items()) if value is function)
