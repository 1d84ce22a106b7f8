"""Whether a value can be stored and read again: what the memories of rules have to be.

Such a value consists of None, booleans, numbers, texts, enum members, tuples, named tuples, frozen dataclasses, and
mappings with text keys. Its canonical form (``to_canonical``) has everything that it has.
"""

import enum
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Final

_PLAIN: Final = (type(None), bool, int, float, str)
_USABLE: Final = (
    "numbers, booleans, texts, None, enum members, tuples, mappings with text keys, named tuples and frozen dataclasses"
)


def unencodable(value: object, path: str) -> str | None:
    """What keeps a value from being stored, with the place of it; None if nothing does.

    Args:
        value: the value.
        path: its name, for the message.
    """
    if type(value) in _PLAIN:
        return None
    if isinstance(value, enum.Enum):
        return unencodable(value.value, f"{path}.value")
    if isinstance(value, Mapping):
        strange = next((key for key in value if not isinstance(key, str)), None)
        if strange is not None:
            return f"{path} has a key that is no text, but a {type(strange).__name__}"
        named = {f"{path}[{key!r}]": each for key, each in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        if not value.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # every dataclass has it
            return f"{path} is a {type(value).__name__}, a dataclass that may change; make it frozen"
        named = {f"{path}.{field.name}": getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        named = {f"{path}.{names[at]}" if names else f"{path}[{at}]": each for at, each in enumerate(value)}
    else:
        return f"{path} is a {type(value).__name__}; use {_USABLE}"
    return next((found for name, each in named.items() if (found := unencodable(each, name)) is not None), None)
