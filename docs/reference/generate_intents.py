"""Draw ``intents.md`` from the declarations of operations: ``python docs/reference/generate_intents.py``.

A test compares the page with what this script would write.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("intents.md")
sys.path.insert(0, str(ROOT))

from controlplane.core.operations.operation import Operation, Turn  # noqa: E402 - the checkout is on the path only now
from controlplane.core.operations.registry import OPERATIONS  # noqa: E402 - as above

HEADER = """\
# Intents

<!-- Drawn by docs/reference/generate_intents.py from controlplane/core/operations/: change that, not this page. -->

An intent is what an operator asks for: a record of topic `intents`, with a kind and arguments. The leader answers each
intent once, with an event in the decision log: `done`, `refused`, or `superseded` where later intents of the same
decision contradict it entirely. The same intent id is never carried out twice. Every kind may have the argument
`reason`, which the answer repeats. An intent of another kind, or with another argument, is refused.

The policy's `intent_rights` say which principals may ask for which kinds
([secure a cluster](../how-to/secure-a-cluster.md)). Intents of one decision are carried out in their order in the
topic, unless the kind says otherwise here.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEADER, *("\n".join(_section(operation)) for operation in OPERATIONS.values())])


def _section(operation: Operation) -> Iterator[str]:
    yield f"## {operation.kind.value}\n"
    yield f"{operation.summary}\n"
    yield f"- Command: `controlplane {operation.command}`."
    if operation.supposition:
        yield f"- Supposed by `controlplane table plan --with` as `{operation.supposition}`."
    if operation.turn is not Turn.IN_ORDER:
        yield f"- Carried out {operation.turn.value}."
    yield f"- From feature level {operation.feature_level} on."
    if operation.check_settings is not None:
        yield "- Arguments: any number of names with values."
    yield ""
    if operation.arguments:
        yield "| argument | required | meaning |\n|---|---|---|"
        for argument in operation.arguments:
            yield f"| `{argument.name}` | {'yes' if argument.required else 'no'} | {argument.meaning} |"
        yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
