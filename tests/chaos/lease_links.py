"""For each process a link of its own to the lease store."""

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from controlplane.embedded.server import free_port
from controlplane.embedded.valkey import EmbeddedValkey
from tests.chaos.proxy import HOST, LinkMode, Proxy


class LeaseLinks:
    """The links that lead to a lease store. A context manager: they exist within the block.

    Args:
        valkey: the lease store, which may start later.
        names: of the processes.
    """

    def __init__(self, valkey: EmbeddedValkey, names: Sequence[str]) -> None:
        """Choose the ports; nothing runs yet."""
        self._valkey = valkey
        self._ports = {name: free_port() for name in names}
        self._proxy = Proxy()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Open every link."""
        with ExitStack() as stack:
            stack.enter_context(self._proxy)
            for name, port in self._ports.items():
                self._proxy.link(name, port, self._valkey.port)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End every link."""
        self._stack.close()

    def url_of(self, name: str) -> str:
        """The lease store's URL over the link of a process."""
        return f"redis://{HOST}:{self._ports[name]}/0"

    def set(self, name: str, mode: LinkMode, delay_ms: int = 0) -> None:
        """Change what becomes of what a process and the lease store send each other."""
        self._proxy.set(name, mode, delay_ms)
