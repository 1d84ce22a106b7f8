"""Settings of topics that are changed while controllers run."""

import pytest
from structlog.testing import capture_logs

from controlplane.config import DECISIONS, HEARTBEATS
from controlplane.errors import ConfigurationError
from controlplane.service import promise_watch
from controlplane.testing.memory_controllers import MemoryControllers

_UNTIL_MS = 10_000


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MemoryControllers:
    """A cluster whose controllers look at the topics all the time."""
    monkeypatch.setattr(promise_watch, "LOOK_EVERY_MS", 40)
    monkeypatch.setattr(promise_watch, "CONFIRM_AFTER_MS", 40)
    return MemoryControllers()


def test_a_changed_setting_is_noticed_within_a_minute() -> None:
    """The time between two looks, and the time after which a broken promise is looked at again."""
    assert promise_watch.LOOK_EVERY_MS + promise_watch.CONFIRM_AFTER_MS < 60_000


def test_a_promise_that_is_broken_later_ends_leader_and_contenders(world: MemoryControllers) -> None:
    """They would not start on such topics, and each further decision might be lost: the error says what to mend."""
    with world:
        controllers = [world.start(name) for name in ("c1", "c2")]
        assert world.becomes_true(lambda: any(each.metric("controlplane_leading") for each in controllers), _UNTIL_MS)
        world.broker.alter_topic(world.cluster.topic(DECISIONS), {"unclean.leader.election.enable": "true"})
        with pytest.raises(ConfigurationError, match=r"changed:\ntopic test\.decisions has unclean") as ended:
            world.becomes_true(lambda: False, _UNTIL_MS)
        assert "it has to be false" in str(ended.value)
        assert "--entity-name test.decisions --add-config unclean.leader.election.enable=false" in str(ended.value)
        for controller in controllers:
            controller.end()
        assert [type(each.failure) for each in controllers] == [ConfigurationError, ConfigurationError]
        assert controllers[0].metric("controlplane_broken_promises") == 1


def test_one_look_alone_ends_nobody(monkeypatch: pytest.MonkeyPatch, world: MemoryControllers) -> None:
    """One broker may show what was true a moment ago; what was mended meanwhile is no reason to stop."""
    monkeypatch.setattr(promise_watch, "CONFIRM_AFTER_MS", 400)
    with world, capture_logs() as lines:
        controller = world.start("c1")
        assert world.becomes_true(lambda: controller.metric("controlplane_leading"), _UNTIL_MS)
        topic = world.cluster.topic(HEARTBEATS)
        world.broker.alter_topic(topic, {"cleanup.policy": "compact"})
        assert world.becomes_true(lambda: controller.metric("controlplane_broken_promises"), _UNTIL_MS)
        world.broker.alter_topic(topic, {"cleanup.policy": "delete"})
        assert world.becomes_true(lambda: controller.metric("controlplane_broken_promises") == 0, _UNTIL_MS)
        assert controller.alive
    told = [line for line in lines if line["event"] == "Kafka's settings break a promise"]
    assert [line["log_level"] for line in told] == ["error"]
    assert told[0]["promise"].startswith("topic test.heartbeats has cleanup.policy = compact; it has to be delete.")


def test_no_answer_proves_nothing(monkeypatch: pytest.MonkeyPatch, world: MemoryControllers) -> None:
    """A Kafka that is away breaks no promise: the metric says that the settings are not known."""
    with world, capture_logs() as lines:
        controller = world.start("c1")
        assert world.becomes_true(lambda: controller.metric("controlplane_leading"), _UNTIL_MS)
        world.broker.available = False
        assert world.becomes_true(lambda: controller.metric("controlplane_topic_settings_known") == 0, _UNTIL_MS)
        world.broker.available = True
        assert world.becomes_true(lambda: controller.metric("controlplane_topic_settings_known") == 1, _UNTIL_MS)
        assert controller.alive
    told = [line["event"] for line in lines if "topics' settings" in line["event"]]
    assert told == [
        "Kafka does not show its topics' settings, so they are not checked",
        "Kafka shows its topics' settings again",
    ]
