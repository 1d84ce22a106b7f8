"""A request, from the moment at which it is accepted to its end."""

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

from controlplane.core.bundles.bundle import Bundle
from controlplane.core.values.addresses import Address
from controlplane.core.values.identifiers import Epoch, NodeId, SlotId
from controlplane.node.callbacks import Access, BundleOwnership, FencingToken, Ownership
from controlplane.node.caller_view import AnswerT
from controlplane.node.held_bundle import AcceptedBundleRequest
from controlplane.node.slot_releases import AcceptedSlotRequest


class _Accepted(Protocol):
    """A request that was accepted."""

    is_void: bool


AcceptedT = TypeVar("AcceptedT", bound=_Accepted)


class ServedRequest(Generic[AnswerT, AcceptedT]):
    """A context manager around the serving of one request; the agent makes it. For one thread.

    Entering asks for the right to serve. If :attr:`access` is "accept" then, a release waits for the end of the
    context, within a limit. Otherwise the request has to be refused in the context.
    """

    def __init__(
        self,
        enter: Callable[[], tuple[AnswerT, AcceptedT | None]],
        leave: Callable[[AcceptedT], None],
        is_session_valid: Callable[[], bool],
    ) -> None:
        """Set up; nothing is accepted before the context is entered."""
        self._enter = enter
        self._leave = leave
        self._is_session_valid = is_session_valid
        self._ownership: AnswerT | None = None
        self._accepted: AcceptedT | None = None
        self._held_at_exit: bool | None = None

    def __enter__(self) -> Self:
        """Ask for the right to serve."""
        self._ownership, self._accepted = self._enter()
        return self

    def __exit__(self, *_: object) -> None:
        """End the request: a release need not wait for it any more."""
        self._held_at_exit = self.held
        if self._accepted is not None:
            self._leave(self._accepted)

    @property
    def access(self) -> Access:
        """Whether the request may be served; see :class:`Access`."""
        return self.ownership.access

    @property
    def token(self) -> FencingToken:
        """The fencing token, to pass on with every write."""
        return self.ownership.token

    @property
    def epoch(self) -> Epoch:
        """The epoch of the table that was in use when the request came."""
        return self.ownership.epoch

    @property
    def ask(self) -> NodeId | None:
        """The node that the client should ask; see :class:`Ownership` and :class:`BundleOwnership`."""
        return self.ownership.ask

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The addresses of the node that the client should ask, by name; empty if the table names none."""
        return self.ownership.addresses

    @property
    def ownership(self) -> AnswerT:
        """The whole answer.

        Raises:
            RuntimeError: the context was not entered.
        """
        if self._ownership is None:
            raise RuntimeError("the context was not entered: use `with agent.serve(...) as request:`")
        return self._ownership

    @property
    def held(self) -> bool:
        """Whether the right to serve has lasted until now or, after the context, until its end.

        It ends with the owner epoch, also when a release has waited for long enough, and while the session may not
        serve. A child of the bundle, or a part of the slot, continues it after a split. If it has ended, another node
        may have accepted requests for the same key meanwhile, and the answer must not say that the request was carried
        out.
        """
        if self._held_at_exit is not None:
            return self._held_at_exit
        return self._accepted is not None and not self._accepted.is_void and self._is_session_valid()


class ServedBundleRequest(ServedRequest[BundleOwnership, AcceptedBundleRequest]):
    """A request for a key of a bundle; ``NodeAgent.serve`` makes it."""

    @property
    def bundle(self) -> Bundle | None:
        """The bundle's row in the table; None if there is none that covers the key."""
        return self.ownership.bundle


class ServedSlotRequest(ServedRequest[Ownership, AcceptedSlotRequest]):
    """A request for a slot; ``NodeAgent.serve_slot`` and ``serve_slot_of`` make it."""

    @property
    def slot_id(self) -> SlotId | None:
        """The slot; None if there is no table yet."""
        return self.ownership.slot_id
