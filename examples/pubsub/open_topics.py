"""The topics of one broker: those that have a file, and those of them that are open."""

import threading
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import structlog

from controlplane.node import Bundle, FencingToken
from examples.pubsub.topic_file import Refused, TopicFile, is_in

_SUFFIX: Final = ".topic"


class OpenTopics:
    """The topics that a broker has open, by their names. Thread-safe.

    They are not filed by bundle: after a split each of them is in one of the parts, and none has to be filed anew.

    Args:
        directory: where all brokers have the files.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._files: dict[str, TopicFile] = {}
        self._lock = threading.Lock()

    def file_of(self, topic: str) -> TopicFile:
        """The open file of a topic. It is created if there is none."""
        with self._lock:
            file = self._files.get(topic)
            if file is None:
                file = self._files[topic] = TopicFile(self._directory / f"{quote(topic, safe='')}{_SUFFIX}")
            return file

    def take_over(self, bundle: Bundle, token: FencingToken) -> None:
        """Open every topic of a bundle that has a file. From here on no former owner can add anything to them."""
        for topic in self.stored_in(bundle):
            try:
                self.file_of(topic).take_over(token)
            except Refused as refused:
                # The bundle has moved on already. The agent will say so.
                structlog.get_logger().warning("topic not taken over", topic=topic, reason=str(refused))

    def close(self, bundle: Bundle) -> None:
        """Close the topics of a bundle."""
        for topic in self.open_in(bundle):
            with self._lock:
                file = self._files.pop(topic, None)
            if file is not None:
                file.close()

    def open_in(self, bundle: Bundle) -> list[str]:
        """The topics of a bundle that are open."""
        with self._lock:
            return [topic for topic in self._files if is_in(bundle, topic)]

    def stored_in(self, bundle: Bundle) -> list[str]:
        """The topics of a bundle that have a file."""
        topics = (unquote(path.stem) for path in self._directory.glob(f"*{_SUFFIX}"))
        return sorted(topic for topic in topics if is_in(bundle, topic))
