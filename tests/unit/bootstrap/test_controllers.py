"""What a controller's process is made of."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from controlplane.bootstrap import controllers
from controlplane.config import ClusterConfig, ControllerConfig, KafkaConfig
from controlplane.core.cluster.policy import ClusterPolicy
from controlplane.core.slots.policies import BUILT_IN_POLICIES


def test_each_process_asks_for_the_lease_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that were given one name must not be taken for one another by the lease store."""
    processes: list[str] = []

    def note(_: ClusterConfig, __: str, ___: int, process: str) -> Any:  # noqa: ANN401 - nobody asks it for anything
        processes.append(process)
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(controllers, "verify_topics", lambda *_: None)
    monkeypatch.setattr(controllers, "ask_transaction_timeout_ms", lambda *_: 5_000)
    monkeypatch.setattr(controllers, "_event_writer", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(controllers, "compose_controller", lambda *_, **__: SimpleNamespace(run=lambda _: None))
    monkeypatch.setattr(controllers, "RedisLeaseStore", note)
    monkeypatch.setattr(controllers, "ControllerMetrics", lambda: None)
    monkeypatch.setattr(structlog.contextvars, "bind_contextvars", lambda **_: None)
    config = ControllerConfig(ClusterConfig("demo"), KafkaConfig("nowhere"), "redis://nowhere", "c1")
    for _ in range(2):
        controllers.run_controller(config, ClusterPolicy(), BUILT_IN_POLICIES, threading.Event())
    first, again, second, _ = processes
    assert first == again != second
    assert len(first) == len(second) == 8
