"""What a caller knew when it chose this node, and the answer that follows from the difference to what is known here."""

from typing import Final, NamedTuple, Protocol, Self, TypeVar

from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, NodeId
from controlplane.node.callbacks import Access, FencingToken

_UNKNOWN: Final = Epoch(0)


class RoutedBy(NamedTuple):
    """The row by which a caller has chosen this node; both epochs are in its route.

    Attributes:
        epoch: of the caller's table.
        since_epoch: the slot leader epoch, or the owner epoch of the bundle, in that table; 0 if it is not known, as
            for a bundle that is being handed off.
    """

    epoch: Epoch
    since_epoch: Epoch


class Answer(Protocol):
    """What the answers for slots and for bundles have in common."""

    @property
    def access(self) -> Access:
        """Whether the node serves."""

    @property
    def token(self) -> FencingToken:
        """The fencing token in the table in use."""

    @property
    def epoch(self) -> Epoch:
        """Of that table."""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Those of the node to ask, by name."""

    @property
    def ask(self) -> NodeId | None:
        """The node to ask."""

    def _replace(
        self, *, access: Access = ..., ask: NodeId | None = ..., addresses: tuple[Address, ...] = ...
    ) -> Self: ...


AnswerT = TypeVar("AnswerT", bound=Answer)


def compared(answer: AnswerT, routed_by: RoutedBy | None) -> AnswerT:
    """The answer to a caller that goes by this row; the same one for a caller that names none.

    Where the rows differ, the answer is "mismatch": the one with the older table has to read on, and the caller has to
    ask again. A caller that is behind is told where to go or to wait instead, if this node does not serve.
    """
    if routed_by is None or routed_by.since_epoch == answer.token.since_epoch:
        return answer
    is_behind = routed_by.since_epoch > answer.token.since_epoch
    if answer.access is Access.UNSUPPORTED:
        is_behind = routed_by.epoch > answer.epoch
    is_other = answer.access is Access.ACCEPT and routed_by.since_epoch != _UNKNOWN
    return answer._replace(access=Access.MISMATCH) if is_behind or is_other else answer


def withheld(answer: AnswerT) -> AnswerT:
    """The answer of a node that may not serve now: "moved", to no node where the table names this one."""
    return answer if answer.access is Access.MOVED else answer._replace(access=Access.MOVED, ask=None, addresses=())
