"""Steps that a node's calls have done, and those that its other calls are about to do: which share a heartbeat."""

import time
from collections.abc import Callable

import pytest

from controlplane.core.bundles.ownership_channel.live_rows import assigning
from controlplane.core.bundles.reports import BundleStep, BundleStepReport
from controlplane.core.values.identifiers import Epoch
from controlplane.node import HandoffSettings, bundle_reports
from controlplane.node.bundle_reports import GATHER_AT_MOST_MS, GATHER_MS, BundleSteps
from tests.helpers.polling import poll_until
from tests.unit.node import test_bundle_handoffs
from tests.unit.node.test_bundle_handoffs import Member


@pytest.fixture(autouse=True)
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call counts as hung within a test."""
    monkeypatch.setattr(test_bundle_handoffs, "SETTINGS", HandoffSettings())


def opening_two() -> tuple[Member, Callable[[], None]]:
    """A member that has opened one of two bundles, and opens the other one as soon as the answer is called."""
    member = Member(count=2)
    go_on = member.service.hang_in(f"assigned {min(member.rows)}")
    for bundle_id, row in member.rows.items():
        member.rows[bundle_id] = assigning(row, "n", Epoch(member.feed.epoch + 1))
        member.feed.bundle(member.rows[bundle_id])
    member.feed.commit()
    poll_until(lambda: member.agent._shared.bundles.has_news or reports(member))  # noqa: SLF001 - before it is reported
    return member, go_on


def reports(member: Member) -> list[int]:
    """How many steps each heartbeat has reported that reported any."""
    return [len(beat.bundle_steps) for beat in member.beats() if beat.bundle_steps]


def test_a_step_waits_a_moment_for_calls_that_are_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that misses the heartbeat of the others costs a further decision."""
    monkeypatch.setattr(bundle_reports, "GATHER_MS", 60_000)
    monkeypatch.setattr(bundle_reports, "GATHER_AT_MOST_MS", 60_000)
    member, go_on = opening_two()
    time.sleep(0.1)  # more than a heartbeat takes
    go_on()
    poll_until(lambda: reports(member))
    assert reports(member) == [2]
    member.agent.stop(drain=False)


def test_a_step_waits_for_other_calls_no_longer_than_a_moment() -> None:
    """A bundle that takes long to open holds no other one up."""
    member, go_on = opening_two()
    poll_until(lambda: reports(member) == [1], 3)  # the next heartbeat of its own accord comes after 5 s
    go_on()
    poll_until(lambda: reports(member) == [1, 2])
    member.agent.stop(drain=False)


def due_at_ms(*done_at_ms: int) -> int | None:
    """When a heartbeat is due for steps that were done at these times, while calls are in progress."""
    steps = BundleSteps()
    for number, now_ms in enumerate(done_at_ms):
        steps.note(f"bundle-{number}", BundleStepReport(f"bundle-{number}", 1, BundleStep.OPENED), now_ms)
    return steps.due_at_ms


def test_steps_wait_for_one_another_while_calls_keep_ending() -> None:
    """A hundred calls that return quickly are reported together, though they take longer than one waits for one."""
    assert due_at_ms() is None
    assert due_at_ms(100) == 100 + GATHER_MS
    assert due_at_ms(100, 108, 115) == 115 + GATHER_MS
    assert due_at_ms(*range(100, 200, 5)) == 100 + GATHER_AT_MOST_MS


def test_steps_that_were_noted_before_are_no_news() -> None:
    """Every change of a bundle notes its step again."""
    steps = BundleSteps()
    report = BundleStepReport("bundle", 1, BundleStep.OPENED)
    steps.note("bundle", report, 100)
    assert steps.report() == (report,)
    steps.note("bundle", report, 200)
    assert (steps.due_at_ms, steps.report()) == (None, (report,))
    steps.note("bundle", None, 300)
    assert steps.report() == ()
