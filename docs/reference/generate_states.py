"""Generate ``states.md``, and the diagram in ``fencing.md``, from the transition tables.

Run ``python docs/reference/generate_states.py``. Tests compare both pages with the output of this script.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from controlplane.core.bundles.ownership_channel import states as ownership  # noqa: E402 - as above
from controlplane.core.bundles.ownership_state import OwnershipState  # noqa: E402 - as above
from controlplane.core.election import election, sofa_election, steps  # noqa: E402 - as above
from controlplane.core.membership import node as membership  # noqa: E402 - the checkout is on the path only now
from controlplane.core.session import node_session  # noqa: E402 - as above

PAGE = Path(__file__).with_name("states.md")
FENCING = ROOT / "docs" / "explanation" / "fencing.md"
_DRAWN, _END = "from the transition table: change that, not this. -->\n", "<!-- End of what is drawn. -->"
_HEAD = """\
# States

<!-- Drawn by docs/reference/generate_states.py from the transition tables: change those, not this page. -->

The state machines of nodes, bundles and controllers, drawn from their transition tables. A transition that is not shown
is an error.

## A node in the log

Only events in decisions change the status of a node (`controlplane/core/membership/node.py`).

"""
_BUNDLES = """
## Bundles

The states of a bundle's ownership, in the bundle's row (`controlplane/core/bundles/ownership_channel/states.py`). A new
bundle has no owner, and a bundle that was split is removed. These are the planned steps: the node that they concern has
done its part before the leader writes the next row. A *forced* row (`is_forced`) may follow any other one. By it the
leader gives the bundle of a lost node to another one, chooses another next owner, or gives up a split. Below feature
level 3 there are only *Free* and *Owned*, and every change is forced.

"""
_SESSION = """
## A node's session

The session of the agent (`controlplane/core/session/node_session.py`). Its states follow the routing table, except that
it detects by itself that its heartbeats are no longer acknowledged. It refuses requests in every state but `active` and
`draining`. In these two it refuses requests if it has not read the table to its end for too long: a reading is valid
for the time for which the node may serve without the log, and for 1.5 s at least. An agent that is configured to serve
without the log does so as long as the table shows it as a member.

"""
_ELECTION = """
## A controller and the lease

Standing for election and holding the lease (`controlplane/core/election/election.py`), in a thread of its own.
The table below the diagram shows the requests to the lease store.

"""
_SOFA = """
## A controller and SOFARegistry's lock

A round of the election under lease profile `sofa` (`controlplane/core/election/sofa_election.py`), in the same thread.

"""
_LEADING = """
## A controller's loop

From following to leading and back (`controlplane/core/election/steps.py`). Every step can also be shut down, or end
with an error, which discards the writer and releases the lease. The table below the diagram shows the actions of each
transition. To *back off* means to release the lease, if it is held, and not to ask for it until some time has passed.
The time depends on the reason in brackets and on chance (`controlplane/core/election/backoff.py`).

"""


_ENDS = frozenset({steps.ControllerTrigger.SHUT_DOWN.value, steps.ControllerTrigger.FAILED.value})


class Arrow(NamedTuple):
    """A transition from one state to another, with its cause and its actions."""

    before: str
    cause: str
    after: str
    actions: str = ""


def page() -> str:
    """The whole page."""
    loop = _loop()
    drawn = [arrow for arrow in loop if arrow.cause not in _ENDS]
    return "".join(
        (
            _HEAD,
            _diagram(_node()),
            _BUNDLES,
            _diagram([_begin(OwnershipState.FREE.value), *_bundles()]),
            _SESSION,
            _diagram([_begin(node_session.SessionState.STARTING.value), *_session()]),
            _ELECTION,
            _diagram([_begin(election.Contender.__name__), *_election()]),
            "\n",
            _table(_election()),
            _SOFA,
            _diagram([_begin(sofa_election.Phase.RESTING.value), *_sofa()]),
            _LEADING,
            _diagram([_begin(steps.ControllerPhase.FOLLOWING.value), *drawn]),
            "\n",
            _table(loop),
        )
    )


def fencing() -> str:
    """``fencing.md`` with a new diagram, which has one arrow for all transitions from one step to another."""
    causes: dict[tuple[str, str], list[str]] = {}
    for arrow in _loop():
        if arrow.before != arrow.after and arrow.cause not in _ENDS:
            causes.setdefault((arrow.before, arrow.after), []).append(arrow.cause)
    arrows = [Arrow(before, ", ".join(among), after) for (before, after), among in causes.items()]
    before, _, rest = FENCING.read_text(encoding="utf-8").partition(_DRAWN)
    _, _, after = rest.partition(_END)
    return f"{before}{_DRAWN}\n{_diagram([_begin(steps.ControllerPhase.FOLLOWING.value), *arrows])}\n{_END}{after}"


def _begin(state: str) -> Arrow:
    return Arrow("[*]", "", state)


def _node() -> list[Arrow]:
    return [
        Arrow(before.value if before else "[*]", event, after.value)
        for (before, event), after in membership.TRANSITIONS.items()
    ]


def _bundles() -> list[Arrow]:
    """Rows have neither the state before the first record nor the one after the last."""
    return [
        Arrow(before.value, "", "[*]" if after is OwnershipState.DELETED else after.value)
        for before, following in ownership.NEXT_STATES[ownership.Storage.METADATA_STORE].items()
        if before not in (OwnershipState.INIT, OwnershipState.DELETED)
        for after in sorted(following, key=list(OwnershipState).index)
    ]


def _session() -> list[Arrow]:
    return [
        Arrow(before.value, trigger.value, after.value) for (before, trigger), after in node_session.TRANSITIONS.items()
    ]


def _election() -> list[Arrow]:
    return [
        Arrow(before.__name__, event.__name__, after.__name__, action.__name__ if action is not None else "")
        for (before, event), row in election.TRANSITIONS.items()
        for after, action in row.outcomes
    ]


def _sofa() -> list[Arrow]:
    return [
        Arrow(before.value, finding.value, after.value)
        for (before, finding), after in sofa_election.TRANSITIONS.items()
    ]


def _planned(planned: steps.Planned) -> str:
    return planned.value if isinstance(planned, steps.ControllerAction) else f"back off ({planned.value})"


def _loop() -> list[Arrow]:
    return [
        Arrow(before.value, trigger.value, row.phase.value, ", ".join(_planned(each) for each in row.actions))
        for (before, trigger), row in steps.TRANSITIONS.items()
    ]


def _diagram(arrows: Iterable[Arrow]) -> str:
    """A Mermaid state diagram. Its arrows omit the actions, so transitions that differ only in these are one arrow."""
    lines = [
        f"    {_name(arrow.before)} --> {_name(arrow.after)}{f': {arrow.cause}' if arrow.cause else ''}\n"
        for arrow in arrows
    ]
    return "```mermaid\nstateDiagram-v2\n" + "".join(dict.fromkeys(lines)) + "```\n"


def _table(arrows: Iterable[Arrow]) -> str:
    lines = [f"| {arrow.before} | {arrow.cause} | {arrow.after} | {arrow.actions} |\n" for arrow in arrows]
    return "| from | cause | to | actions |\n|---|---|---|---|\n" + "".join(lines)


def _name(state: str) -> str:
    """The state's name without spaces, which Mermaid does not allow."""
    return state.replace(" ", "_")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    FENCING.write_text(fencing(), encoding="utf-8")
