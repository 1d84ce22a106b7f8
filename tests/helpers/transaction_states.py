"""What a transaction's coordinator says of it, by Kafka's DescribeTransactions, which Python's client does not have."""

import struct
from typing import Final

from tests.helpers.kafka_requests import NO_TAGS, NULL_CLIENT, ask_any, length_of, take_length, take_text

_DESCRIBE_API_KEY: Final = 65
ENDING: Final = frozenset({"PrepareCommit", "PrepareAbort"})
"""The end is decided and logged, and not every partition has its marker yet."""


def transaction_state(coordinator: str, transactional_id: str) -> str:
    """The state of an id's last transaction, for example ``Ongoing``, ``PrepareCommit`` or ``CompleteCommit``.

    Args:
        coordinator: the address of the broker that coordinates it.
        transactional_id: the id.

    Raises:
        AssertionError: that broker does not answer, or does not coordinate it.
    """
    name = transactional_id.encode()
    header = struct.pack(">hhih", _DESCRIBE_API_KEY, 0, 1, NULL_CLIENT) + NO_TAGS
    answer = ask_any(coordinator, header + length_of(1) + length_of(len(name)) + name + NO_TAGS)
    answer.read(4 + 1 + 4)  # correlation id, no tags, throttle time
    assert take_length(answer) == 1
    code: int = struct.unpack(">h", answer.read(2))[0]
    take_text(answer)  # the id
    state = take_text(answer)
    assert code == 0, f"{coordinator} does not know {transactional_id}: error {code}"
    return state
