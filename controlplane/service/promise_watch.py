"""Notices that settings of Kafka's topics, which may be changed while a controller runs, break a promise."""

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from controlplane.config import topic_name
from controlplane.errors import ConfigurationError, RetryableError
from controlplane.kafka_rules.promises import INTERNAL_TOPICS, Judgement, judge
from controlplane.kafka_rules.topics_file import TopicSpec
from controlplane.ports import Threads, TopicInspector
from controlplane.service.guarded_thread import GuardedThread
from controlplane.service.metrics import ControllerMetrics

LOOK_EVERY_MS: Final = 30_000
"""Together with the second look, a changed setting is noticed within a minute."""
CONFIRM_AFTER_MS: Final = 5_000
"""Time after which a broken promise is looked at again: one broker may show what was true a moment ago."""

_log = structlog.get_logger(__name__)


class PromiseWatch:
    """A thread that asks Kafka for its settings now and then; nothing that a controller does waits for it.

    A promise that is broken at two looks in a row ends the controller with the error with which it would not have
    started. An answer that does not come proves nothing.
    """

    def __init__(
        self,
        open_inspector: Callable[[], TopicInspector],
        cluster: str,
        specs: Sequence[TopicSpec],
        threads: Threads,
        metrics: ControllerMetrics,
    ) -> None:
        """Set up the thread.

        Args:
            open_inspector: connects to Kafka.
            cluster: the cluster's name, the prefix of its topics.
            specs: the cluster's topics.
            threads: makes the thread.
            metrics: show what was found.
        """
        self._open_inspector = open_inspector
        self._cluster = cluster
        self._specs = specs
        self._metrics = metrics
        self._names = [*(topic_name(cluster, spec.name) for spec in specs), *INTERNAL_TOPICS]
        self._last = Judgement((), ())
        self._is_known = True
        self._thread = GuardedThread(threads, "promise-watch", self._run)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._thread.stop()

    def require_kept(self) -> None:
        """Check what the last looks have found.

        Raises:
            ConfigurationError: a promise is broken; the message names topic, setting and promise.
            BaseException: the exception that ended the thread, if any.
        """
        self._thread.require_alive()

    def _run(self) -> None:
        inspector = self._open_inspector()
        while not self._thread.stopping.wait((CONFIRM_AFTER_MS if self._last.broken else LOOK_EVERY_MS) / 1_000):
            self._look(inspector)

    def _look(self, inspector: TopicInspector) -> None:
        try:
            found = judge(self._cluster, self._specs, inspector.describe(self._names))
        except (RetryableError, ConfigurationError) as error:
            self._tell_known(is_known=False, why=str(error))
            return
        self._tell_known(is_known=True)
        self._metrics.broken_promises.set(len(found.broken))
        for sentence in found.advice:
            if sentence not in self._last.advice:
                _log.warning("Kafka's settings are not those that are advised", difference=sentence)
        confirmed = [sentence for sentence in found.broken if sentence in self._last.broken]
        for sentence in found.broken:
            if sentence not in confirmed:
                _log.error("Kafka's settings break a promise", promise=sentence)
        self._last = found
        if confirmed:
            head = f"the topics of cluster {self._cluster} break promises that controllers rely on; they were changed:"
            raise ConfigurationError("\n".join([head, *confirmed]))

    def _tell_known(self, *, is_known: bool, why: str = "") -> None:
        self._metrics.topic_settings_known.set(is_known)
        if is_known != self._is_known:
            self._is_known = is_known
            if is_known:
                _log.info("Kafka shows its topics' settings again")
            else:
                _log.warning("Kafka does not show its topics' settings, so they are not checked", error=why)
