"""The steps in which a node leaves in good order (Pulsar's disableBroker)."""

from enum import Enum


class ShutdownStep(Enum):
    """The steps, in this order. A failed step does not keep the next ones from being done."""

    STOP_REPORTS = "stop-reports"
    """Report no load any more, so that no bundle is placed here."""
    DISABLE_TABLE = "disable-table"
    """Take part in the ownership table no longer, except for forced records (``flows.Participant.is_disabled``)."""
    GIVE_BUNDLES_AWAY = "give-bundles-away"
    """Give all bundles to others, gracefully (``cleanup.plan_clean_up``)."""
    UNREGISTER = "unregister"
    """Leave the registry. No clean-up follows: the node owns nothing."""
    RESIGN = "resign"
    """Leave the leader's election."""
    CLOSE_TOPICS = "close-topics"
    """Close the topics of the load manager itself."""
