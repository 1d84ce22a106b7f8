"""Regular expressions that Python and Java read differently: they are refused, because policies come from Pulsar."""

import re
from typing import Final

_REPETITION: Final = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_GROUP: Final = re.compile(r"\(\?(?:[:=!>]|<[=!]|-?[ims]+[:)]|[ims]+-[ims]+[:)])")
_ESCAPE: Final = re.compile(r"\\(?:[ZvU0]|[1-9][0-9])")


def difference_to_java(expression: str) -> str | None:
    r"""The first part that Java reads in another way than Python, or as an error, with the cause; None without one.

    What Python refuses itself, such as ``\p{Alpha}``, is not looked for.
    """
    position, class_begins = 0, -1
    while position < len(expression):
        character = expression[position]
        inside = class_begins >= 0
        if character == "\\":
            found = _ESCAPE.match(expression, position)
            if found or (inside and expression[position + 1 : position + 2] == "b"):
                return "the escape " + (found[0] if found else r"\b in a class")
            position += 2
            continue
        if inside:
            if character == "[":
                return "a class inside a class"
            if expression.startswith("&&", position):
                return "an intersection of classes, '&&'"
            if character == "]" and position > class_begins:
                class_begins = -1
        elif character == "[":
            # A bracket that closes stands for itself as the first character of a class.
            class_begins = position + 1 + expression.startswith("^", position + 1)
            position = class_begins
            continue
        elif character == "{":
            repetition = _REPETITION.match(expression, position)
            if repetition is None:
                return "a brace that does not begin {n}, {n,} or {n,m}"
            position = repetition.end()
            continue
        elif expression.startswith("(?", position) and _GROUP.match(expression, position) is None:
            return f"the group {expression[position : position + 4]!r}"
        position += 1
    return None
