"""Loads what deltalake reads tables with, and leaves out pandas, which that would load and nothing here uses."""

import sys
from importlib.abc import MetaPathFinder


class _WithoutPandas(MetaPathFinder):
    """Stands before the other finders, and has pandas as not installed.

    None in ``sys.modules`` does not do: to imports in compiled code, as pyarrow's are, it is a module.
    """

    def find_spec(self, fullname: str, _path: object, _target: object = None, /) -> None:
        """Refuse pandas, and leave every other module to the finders behind this one."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def load_arrow_without_pandas() -> None:
    """Import pyarrow.dataset, and let it find no pandas, unless pandas is loaded already.

    pyarrow.dataset makes a scalar when it is imported, and to make one pyarrow imports pandas, if it is installed. That
    is a quarter of the time of a command that answers a small query.

    This is for a process that ends with its command: pyarrow looks for pandas once, so for the rest of the process it
    takes objects of pandas for plain sequences, until it is asked for something that has to have pandas, such as
    ``to_pandas()``.

    Raises:
        ImportError: pyarrow is not installed.
    """
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow.dataset  # noqa: F401
    finally:
        sys.meta_path.remove(finder)
