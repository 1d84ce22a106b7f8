"""Candidates: bundles that the pipeline would split or shed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A bundle that should be split or shed, with the evidence. Topic ``candidates``, key ``bundle_id``.

    Attributes:
        candidate_id: unique for a bundle, an action and the newest report that counted: equal evidence, equal id.
        action: ``split`` or ``shed``.
        bundle_id: which bundle.
        node_id: the owner that reported it.
        rule: the rule's name, for example ``pulsar-modular-split``.
        evidence: measured value, threshold and unit by name, as text.
        window_start_ms: append time of the first report that counted.
        window_end_ms: append time of the last report that counted.
    """

    candidate_id: str
    action: str
    bundle_id: str
    node_id: str
    rule: str
    evidence: dict[str, str]
    window_start_ms: int
    window_end_ms: int
