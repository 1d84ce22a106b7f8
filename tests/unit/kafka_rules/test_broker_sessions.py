"""What follows from the session after which Kafka gives up a dead broker."""

import re
from pathlib import Path

import pytest

from controlplane.embedded.kafka_cluster import cluster_settings
from controlplane.kafka_rules.broker_sessions import (
    BROKER_SESSION,
    RECOMMENDED_MS,
    USUAL_SESSION_MS,
    transaction_timeout_ms,
)
from controlplane.kafka_rules.promises import bearing_silence_limit_ms
from controlplane.kafka_rules.topics_file import least_in_sync

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "platforms.md"


def rows(pattern: str) -> list[tuple[str, ...]]:
    """The cells in the page's tables, one tuple for each line that the pattern matches."""
    return re.findall(f"^{pattern}", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def number(cell: str) -> int:
    """The number in a cell, which has a comma after the thousands."""
    return int(cell.replace(",", ""))


@pytest.mark.parametrize(
    ("brokers", "session_ms", "timeout_ms"),
    [
        (0, 9_000, 5_000),
        (1, 9_000, 5_000),
        (2, 30_000, 35_000),
        (3, 3_000, 10_000),
        (3, 5_000, 10_000),
        (3, 5_001, 10_001),
        (3, 9_000, 14_000),
    ],
)
def test_a_transaction_stays_open_for_longer_than_a_dead_broker_is_waited_for(
    brokers: int, session_ms: int, timeout_ms: int
) -> None:
    """The session and 5 s, 10 s at least; 5 s with one broker, whose death no commit outlasts."""
    assert transaction_timeout_ms(brokers, session_ms) == timeout_ms


def test_the_page_recommends_what_is_advised() -> None:
    """``docs/reference/platforms.md`` has the only table of these settings."""
    table = {
        name: (number(advised), number(usual)) for name, advised, usual in rows(r"\| `(\S+)` \| (\S+) \| (\S+) \|$")
    }
    assert {name: advised for name, (advised, _) in table.items()} == RECOMMENDED_MS
    assert table[BROKER_SESSION][1] == USUAL_SESSION_MS


def test_the_page_names_the_silence_limits_that_bear_a_session() -> None:
    """Of the session that is recommended, and of the usual one."""
    table = {number(session): number(limit) for session, limit in rows(r"\| (\S+) ms[^|]* \| (\S+) ms")}
    assert table == {
        each: bearing_silence_limit_ms(each) for each in (RECOMMENDED_MS[BROKER_SESSION], USUAL_SESSION_MS)
    }


@pytest.mark.parametrize("brokers", [2, 3, 4])
def test_several_brokers_of_up_have_what_is_recommended(brokers: int) -> None:
    """What is tried there is what production has."""
    settings = cluster_settings(brokers)
    assert {name: settings[name] for name in RECOMMENDED_MS} == {
        name: str(each) for name, each in RECOMMENDED_MS.items()
    }


@pytest.mark.parametrize(("copies", "least"), [(1, 1), (2, 1), (3, 2), (5, 2)])
def test_one_broker_may_be_missing_among_those_that_acknowledge(copies: int, least: int) -> None:
    """With one copy there is none to spare."""
    assert least_in_sync(copies) == least
    assert least_in_sync(copies, wanted=1) == 1
