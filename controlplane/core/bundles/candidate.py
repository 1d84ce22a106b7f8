"""Candidates: bundles that, by the pipeline's rules, should be split or shed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """A bundle that should be split or shed, with evidence. Topic ``candidates``, key ``bundle_id``.

    Attributes:
        candidate_id: follows from the bundle, the action and the last report in the window, so that equal evidence has
            an equal id.
        action: ``split`` or ``shed``.
        bundle_id: id of the bundle.
        node_id: the owner, which reported the load.
        rule: name of the rule, for example ``BundleSplitterTask``.
        evidence: measured value, threshold and unit by name, as text.
        window_start_ms: append time of the first report in the window.
        window_end_ms: append time of the last report in the window.
    """

    candidate_id: str
    action: str
    bundle_id: str
    node_id: str
    rule: str
    evidence: dict[str, str]
    window_start_ms: int
    window_end_ms: int
