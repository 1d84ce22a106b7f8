"""Recorded answers of HiveMQ's ring, compared with ``controlplane.core.slots.ring``.

What is compared: hashes, the places of a node, the number of places that are taken after a history of joins and leaves,
and for each key its owner, its replicas (as a set) or the error.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from controlplane.core.slots.ring.hash_ring import HashRing
from controlplane.core.slots.ring.text_hash import places_of, text_hash
from controlplane.errors import NoRouteError

Document: TypeAlias = dict[str, Any]

ERRORS: Final = {NoRouteError: "empty"}


def mismatch(case: Mapping[str, Any]) -> str | None:
    """How our answer differs from the recorded one; None if it does not."""
    operation = OPERATIONS.get(case["op"])
    if operation is None:
        return "unknown operation"
    expected, answered = _comparable(case["output"]), operation(case["input"])
    for name in sorted({*expected, *answered}):
        if expected.get(name) != answered.get(name):
            return f"{name}: expected {_short(expected.get(name))}, got {_short(answered.get(name))}"
    return None


def _short(value: object) -> str:
    return f"{value!a:.200}"


def _hash(given: Document) -> Document:
    return {"hash": text_hash(given["text"])}


def _buckets(given: Document) -> Document:
    return {"hashes": list(places_of(given["node"]))}


def _lookup(given: Document) -> Document:
    ring = HashRing()
    change = {"add": ring.add, "remove": ring.remove}
    for action, node in given["history"]:
        change[action](node)
    return {"buckets": len(ring), "answers": [_answer(ring, key, given["replicas"]) for key in given["keys"]]}


def _answer(ring: HashRing, key: str, count: int) -> Document:
    try:
        return {"owner": ring.owner(key), "replicas": sorted(ring.replicas(key, count))}
    except NoRouteError as error:
        return {"error": ERRORS[type(error)]}


OPERATIONS: Final[dict[str, Callable[[Document], Document]]] = {
    "hash": _hash,
    "buckets": _buckets,
    "lookup": _lookup,
}


def _comparable(output: Document) -> Document:
    """The recorded answer with replicas in order of name, since the original gives a set."""
    if "answers" not in output:
        return output
    answers = [
        {**answer, "replicas": sorted(answer["replicas"])} if "replicas" in answer else answer
        for answer in output["answers"]
    ]
    return {**output, "answers": answers}
