"""The addresses of nodes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """A named endpoint of a node, for example name ``kv``, host ``10.0.0.7``, port 4000."""

    name: str
    host: str
    port: int
