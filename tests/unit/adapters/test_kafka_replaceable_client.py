"""When a replaceable client is replaced, and what stays the same across the replacement."""

from collections.abc import Set as AbstractSet
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import KafkaError
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from controlplane.adapters.kafka_log_listener import LogListener
from controlplane.adapters.kafka_probe import Place, Probe
from controlplane.adapters.kafka_replaceable_client import ReplaceableClient
from controlplane.adapters.kafka_stall_detector import SECOND_PROBE_AFTER_S, SHORTEST_STALL_LIMIT_S
from tests.helpers.fake_kafka_clients import NOT_MADE, UNANSWERED, over

PLACE: Place = ("demo.decisions", 3)
CHECKED_EVERY_S = 0.5
# Each of the two probes is judged by the check after the one that began it.
REPLACED_AT_S = SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S + 2 * CHECKED_EVERY_S


class FakeClient:
    """Reports to the listener that it was made with."""

    def __init__(self, listener: LogListener) -> None:
        self.listener = listener


class Owner(ReplaceableClient[FakeClient]):
    """A replaceable client whose probes end as the test says."""

    def __init__(self, role: str = "owner") -> None:
        self.can_make = True
        self.probe: Probe = over()
        self.probed: list[AbstractSet[Place]] = []
        self.retired: list[tuple[FakeClient, KafkaError]] = []
        super().__init__("demo", role, self._make_client)

    def check(self, now_s: float) -> bool:
        """Whether the client was replaced."""
        return self._check(now_s)

    def replace(self, former: FakeClient) -> bool:
        """Replace a client that may recover."""
        return self._try_replace(former, UNANSWERED)

    def replaced_at(self, until_s: float) -> list[float]:
        """When the client was replaced that is checked regularly from 0 on."""
        times_s = [step * CHECKED_EVERY_S for step in range(round(until_s / CHECKED_EVERY_S) + 1)]
        return [now_s for now_s in times_s if self.check(now_s)]

    def _make_client(self, listener: LogListener) -> FakeClient:
        if not self.can_make:
            raise NOT_MADE
        return FakeClient(listener)

    def _start_probe(self, places: AbstractSet[Place]) -> Probe:
        self.probed.append(places)
        return self.probe

    def _retire(self, former: FakeClient, cause: KafkaError) -> None:
        self.retired.append((former, cause))


def replacements(role: str) -> float:
    """What the metric says."""
    return REGISTRY.get_sample_value("controlplane_kafka_clients_replaced_total", {"client": role}) or 0.0


def test_a_stalled_client_is_replaced_once_and_the_former_one_retired() -> None:
    """After two answered probes; it is counted, and the warning names the place."""
    owner = Owner("stalled")
    first = owner.current
    owner.stalls.expect(PLACE, 0.0)
    with capture_logs() as lines:
        assert owner.replaced_at(REPLACED_AT_S + 1.0) == [REPLACED_AT_S]
        owner.listener.log(40, "FAIL")
    assert owner.current is not first
    assert owner.current.listener is first.listener, "the last error of the former one stays known"
    assert [former for former, _ in owner.retired] == [first]
    assert owner.retired[0][1].name() == "_MSG_TIMED_OUT"
    assert owner.probed == [{PLACE}, {PLACE}]
    assert replacements("stalled") == 1
    assert [line.get("at") for line in lines] == [["demo.decisions[3]"], None]
    assert {(line["cluster"], line["kafka_client"]) for line in lines} == {("demo", "stalled")}


def test_the_new_client_is_expected_to_deliver_the_same_with_more_time() -> None:
    """Otherwise a link that is slow, or a leader that acknowledges to no client, would cost a client every 5 s."""
    owner = Owner()
    owner.stalls.expect(PLACE, 0.0)
    first_s, second_s = owner.replaced_at(16.0)
    assert second_s - first_s >= 2 * SHORTEST_STALL_LIMIT_S + SECOND_PROBE_AFTER_S
    assert owner.stalls.is_expected(PLACE)


def test_a_client_is_kept_while_no_probe_is_answered() -> None:
    """Kafka is away, and this client finds it again by itself."""
    owner = Owner()
    first, owner.probe = owner.current, over(leader_answered=False)
    owner.stalls.expect(PLACE, 0.0)
    assert owner.replaced_at(60.0) == []
    assert owner.current is first


def test_a_client_that_is_answered_itself_is_given_longer() -> None:
    """The probe's second answer reaches the rule."""
    owner = Owner()
    owner.probe = over(doubted_answered=True)
    owner.stalls.expect(PLACE, 0.0)
    assert owner.replaced_at(20.0) == []


def test_one_probe_runs_at_a_time_and_what_arrives_meanwhile_clears_the_client() -> None:
    """The check does not wait for the probe."""
    owner = Owner()
    running = SimpleNamespace(outcome=None)
    owner.probe = cast("Probe", running)
    owner.stalls.expect(PLACE, 0.0)
    was_suspected = owner.is_suspected
    assert not was_suspected
    assert owner.replaced_at(60.0) == []
    assert len(owner.probed) == 1
    assert owner.is_suspected
    owner.stalls.arrived(PLACE, 60.0)
    running.outcome = over().outcome
    assert not owner.check(61.0)
    assert not owner.is_suspected


def test_a_client_is_kept_where_no_other_can_be_made_and_judged_again() -> None:
    """A certificate that is being renewed must not raise in the loop of the owner."""
    owner = Owner()
    first, owner.can_make = owner.current, False
    owner.stalls.expect(PLACE, 0.0)
    with capture_logs() as lines:
        assert owner.replaced_at(REPLACED_AT_S) == []
    assert [line["event"] for line in lines] == ["Kafka client kept, because no other one can be made"]
    assert (owner.current, owner.retired) == (first, [])
    owner.can_make = True
    assert owner.replaced_at(60.0) != []


def test_a_client_is_replaced_once_though_several_threads_ask_for_it() -> None:
    """The second thread had asked the former client."""
    owner = Owner()
    former = owner.current
    assert owner.replace(former)
    second = owner.current
    assert not owner.replace(former)
    assert (owner.current, owner.retired) == (second, [(former, UNANSWERED)])


def test_a_probe_of_a_former_client_is_dropped() -> None:
    """Its answer would count against the new client."""
    owner = Owner()
    owner.probe = cast("Probe", SimpleNamespace(outcome=None))
    owner.stalls.expect(PLACE, 0.0)
    assert not owner.check(SHORTEST_STALL_LIMIT_S)
    assert owner.is_suspected
    owner.replace(owner.current)
    assert not owner.is_suspected


@pytest.mark.parametrize("roles", [("one", "other"), ("same", "same")])
def test_clients_of_one_process_share_no_state(roles: tuple[str, str]) -> None:
    """Of one cluster or two, of one role or two: the trouble of one says nothing about the other."""
    one, other = (Owner(role) for role in roles)
    one.listener.on_error(UNANSWERED)
    one.listener.login_refused = True
    one.stalls.expect(PLACE, 0.0)
    assert one.replaced_at(REPLACED_AT_S) != []
    assert (other.listener.last_error, other.listener.login_refused) == ("", False)
    assert (other.replaced_at(60.0), other.probed, other.retired) == ([], [], [])
