"""``topics apply`` on a real broker that lets few settings of topics be set, as managed platforms do."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.adapters.kafka_admin import apply_topics, verify_topics
from controlplane.bootstrap.topics import topic_specs
from controlplane.embedded import kafka
from controlplane.embedded.jars import broker_jars
from controlplane.embedded.java import find_java
from controlplane.embedded.kafka import EmbeddedKafka
from controlplane.errors import ConfigurationError, PrerequisiteError
from controlplane.kafka_rules.platforms import PLATFORMS

pytestmark = pytest.mark.kafka

_SOURCE = Path(__file__).parent / "policy" / "FewSettings.java"
_COMPILE_WITHIN_S = 120
_POLICIES = {
    "create.topic.policy.class.name": "FewSettings",
    "alter.config.policy.class.name": "FewSettings",
}
_COMPACTION_LAG = {"log.cleaner.min.compaction.lag.ms": "3600000"}


@pytest.fixture(scope="module")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled policy."""
    folder = tmp_path_factory.mktemp("policy")
    command = [str(find_java().executable), "--module", "jdk.compiler/com.sun.tools.javac.Main", "-d", str(folder)]
    class_path = os.pathsep.join(str(jar) for jar in broker_jars())
    done = subprocess.run(
        [*command, "-cp", class_path, str(_SOURCE)],
        capture_output=True,
        text=True,
        timeout=_COMPILE_WITHIN_S,
        check=False,
    )
    if "jdk.compiler not found" in done.stderr + done.stdout:
        pytest.skip("this Java has no compiler: the policy of a managed Kafka cannot be made")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def broker_with(folder: Path, data_dir: Path, own: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> EmbeddedKafka:
    """A broker with the policy, and with settings of its own."""
    monkeypatch.setattr(kafka, "broker_jars", lambda: [*broker_jars(), folder])
    return EmbeddedKafka(data_dir, settings={**_POLICIES, **own})


@pytest.fixture
def strict(policy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedKafka]:
    """A broker with Kafka's own values for what cannot be set."""
    with broker_with(policy_folder, tmp_path, {}, monkeypatch) as broker:
        yield broker


@pytest.fixture
def fitting(policy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedKafka]:
    """A broker whose own values keep every promise that cannot be asked for."""
    with broker_with(policy_folder, tmp_path, _COMPACTION_LAG, monkeypatch) as broker:
        yield broker


def test_the_promise_that_cannot_be_kept_is_named_and_nothing_is_created(strict: EmbeddedKafka) -> None:
    """Unclean elections are off by Kafka's default and min.insync.replicas is 1: only one promise is out of reach."""
    specs = topic_specs()
    with pytest.raises(ConfigurationError) as refused:
        apply_topics(strict.bootstrap_servers, "few", specs, {}, least_copies=1)
    first, *sentences = str(refused.value).splitlines()
    assert first.startswith("this Kafka cannot keep promises that controllers of cluster few rely on; nothing was")
    (sentence,) = sentences
    assert sentence.startswith("topic few.routing-table needs min.compaction.lag.ms = at least 3600000, which Kafka")
    assert "not configurable: [min.compaction.lag.ms]), and its own value is 0. A reader that is less" in sentence
    with pytest.raises(PrerequisiteError, match=r"has no topic few\.heartbeats"):
        verify_topics(strict.bootstrap_servers, "few", specs, {})


def test_advice_is_not_asked_for_where_it_cannot_be_followed(fitting: EmbeddedKafka) -> None:
    """Where Kafka's own values keep every promise, the topics are created, and the answer says without what."""
    specs = topic_specs()
    report = apply_topics(fitting.bootstrap_servers, "few", specs, {}, least_copies=1)
    assert len(report.created) == len(specs)
    without = next(each for each in report.advice if each.startswith("topic few.routing-table is created without"))
    assert "segment.ms" in without
    verified = verify_topics(fitting.bootstrap_servers, "few", specs, {}, PLATFORMS["msk-serverless"])
    assert not any("segment.ms" in each for each in verified.advice)
