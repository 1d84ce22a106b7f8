"""Samples of the values beneath all subjects: the dead letter of an input record that was refused."""

from controlplane.core.values.dead_letter import DeadLetter
from tests.golden.samples.sample import Sample

DEAD_LETTERS = (
    Sample("plain", DeadLetter("negative", "sent_at_ms is -1", "heartbeats", 3, 17, 1, "controller-1", b"\x00\xff", 2)),
)
