"""Draw ``states.md`` from the transition tables: ``python docs/reference/generate_states.py``.

A test compares the page with what this script would write.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from controlplane.core import membership, node_session  # noqa: E402 - the checkout is on the path only now

PAGE = Path(__file__).with_name("states.md")
_HEAD = """\
# States of a node

<!-- Drawn by docs/reference/generate_states.py from the transition tables: change those, not this page. -->

What is not drawn cannot happen: it is an error where somebody tries.

## As decisions see it

Only events in decisions change where a node stands (`controlplane/core/membership.py`).

"""
_SESSION = """
## As the node sees itself

The agent's session (`controlplane/core/node_session.py`). It follows the routing table; only that its heartbeats are no
longer acknowledged it notices by itself.

"""


def page() -> str:
    """The whole page."""
    node = [
        (before.value if before else "[*]", event, after.value)
        for (before, event), after in membership.TRANSITIONS.items()
    ]
    session = [
        (before.value, trigger.value, after.value) for (before, trigger), after in node_session.TRANSITIONS.items()
    ]
    session.insert(0, ("[*]", "", node_session.SessionState.STARTING.value))
    return _HEAD + _diagram(node) + _SESSION + _diagram(session)


def _diagram(arrows: Iterable[tuple[str, str, str]]) -> str:
    """A Mermaid state diagram; each arrow is (before, cause, after)."""
    lines = [f"    {before} --> {after}{f': {cause}' if cause else ''}\n" for before, cause, after in arrows]
    return "```mermaid\nstateDiagram-v2\n" + "".join(lines) + "```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
