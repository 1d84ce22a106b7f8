"""Where a node serves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """One way to reach a node, for example name ``kv``, host ``10.0.0.7``, port 4000."""

    name: str
    host: str
    port: int
