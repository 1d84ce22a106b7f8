"""The demo's closing queries: they wait for what the pipeline writes last, and say what is missing."""

from types import SimpleNamespace
from typing import cast

import pytest

from controlplane.cli.demo import play as demo_play
from controlplane.cli.demo.cast import HOT_NAMESPACE, Cast
from controlplane.cli.demo.checks import StepFailedError
from controlplane.cli.demo.play import Play
from controlplane.cli.demo.summary import QueryResult

HOT = QueryResult("candidates", [{"bundle_id": f"{HOT_NAMESPACE}/0x00000000_0x40000000"}])
CALM = QueryResult("candidates", [{"bundle_id": "other/0x00000000_0x40000000"}])
LOADS = QueryResult("loads", [{"node_id": "node-1"}])
NO_LOADS = QueryResult("loads", [])


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """A play over processes that run, which does not wait long."""
    monkeypatch.setattr(demo_play, "ASK_EVERY_S", 0.0)
    monkeypatch.setattr(demo_play, "TABLES_DEADLINE_S", 0.05)
    return Play(cast("Cast", SimpleNamespace(stage=SimpleNamespace(watch=lambda: None))))


def test_queries_are_repeated_until_the_tables_have_the_rows(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate is read in Kafka before it is in its table, and the loads of nodes are written last."""
    answers = iter([[CALM, NO_LOADS], [HOT, NO_LOADS], [HOT, LOADS]])
    monkeypatch.setattr(demo_play, "ask_delta", lambda _: next(answers))
    assert play.ask_delta() == [HOT, LOADS]


@pytest.mark.parametrize(
    ("answers", "said"),
    [([CALM, LOADS], f"no candidate of namespace {HOT_NAMESPACE}"), ([HOT, NO_LOADS], "for: loads")],
)
def test_rows_that_do_not_come_fail_the_demo(
    play: Play, monkeypatch: pytest.MonkeyPatch, answers: list[QueryResult], said: str
) -> None:
    """The sentence names the query."""
    monkeypatch.setattr(demo_play, "ask_delta", lambda _: answers)
    with pytest.raises(StepFailedError, match=said):
        play.ask_delta()
