"""A leader in a thread that answers the intents of commands in an in-memory cluster."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.codec.inputs import decode_input
from controlplane.config import INTENTS
from controlplane.core.intents.intent import Intent
from controlplane.core.values.identifiers import TopicPartition
from tests.helpers.published_world import PublishedWorld


@contextmanager
def answering_leader(world: PublishedWorld) -> Iterator[None]:
    """The world's leader answers the intents that come in through the broker, in a thread of its own."""
    done = threading.Event()

    def lead() -> None:
        reader = world.reader()
        reader.assign({TopicPartition(INTENTS, 0): 0})
        heard = set()
        while not done.wait(0.005):
            for record in reader.poll(10, 0).records:
                intent = decode_input(INTENTS, record).payload
                assert isinstance(intent, Intent)
                # The world appends what it hears to the broker as well.
                if intent.intent_id not in heard:
                    heard.add(intent.intent_id)
                    world.principal = intent.principal
                    world.intent(intent.intent_id, intent.kind, **intent.arguments)
                    world.run(100)

    thread = threading.Thread(target=lead)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
