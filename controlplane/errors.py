"""Every exception that the project raises, grouped by what the caller must do.

    ControlPlaneError
    ├── RetryableError                   try the same thing again later
    │   ├── LogUnavailableError          Kafka did not answer in time
    │   ├── LeaseStoreUnavailableError   Redis did not answer in time
    │   └── NoRouteError                 the routing table names nobody for this key yet
    ├── FencedError                      stop writing at once and stand again: another writer took over
    ├── PlacementRefusedError            leave the slot table as it is: the policy cannot make one of what there is
    ├── InvalidInputError                refuse this one input (dead letter) and go on with the next
    ├── StopError                        stop the process and look: going on would make it worse
    │   ├── InvariantViolationError      our own state contradicts itself
    │   ├── LogContinuityError           the log is not the one that we know (recreated, gap, broken chain)
    │   ├── UnsupportedFeatureLevelError the log was written by a newer version
    │   └── UnknownSlotPolicyError       the log names a slot policy that this controller does not have
    └── UserError                        change the call, the configuration or the machine
        ├── ConfigurationError           a setting is wrong or contradicts another
        │   └── NotAllowedError          Kafka does not allow this principal to do that
        ├── MissingExtraError            an optional part of the package is not installed
        └── PrerequisiteError            something outside the package is missing (Java, a free port, a folder)

A message says what was wrong, where, and what to do about it.
"""

from typing import Final


class ControlPlaneError(Exception):
    """The root of the tree: catch it to catch everything that this project raises on purpose."""


class RetryableError(ControlPlaneError):
    """The other side did not answer or said "not now"; the same call may succeed later."""


class LogUnavailableError(RetryableError):
    """Kafka did not answer in time."""


class LeaseStoreUnavailableError(RetryableError):
    """Redis did not answer in time."""


class NoRouteError(RetryableError):
    """The routing table names no node for this key (yet).

    There is no table, no owner at the moment, no such namespace, or a newer version wrote the row; the message says
    which.
    """


class FencedError(ControlPlaneError):
    """Kafka or the lease store says that somebody else writes now; discard uncommitted work and stand again."""


class PlacementRefusedError(ControlPlaneError):
    """A slot policy cannot make a table of what it was given; the message says why, and the table stays as it is."""


class InvalidInputError(ControlPlaneError):
    """One input record cannot be used.

    Args:
        reason: a short, stable, machine-readable code such as ``unknown_fingerprint``; it becomes a metric label.
        detail: a sentence for people: which field, which value, what would have been right.
    """

    def __init__(self, reason: str, detail: str) -> None:
        """Keep the two parts apart so that counters use the code and people read the sentence."""
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class StopError(ControlPlaneError):
    """Going on would do harm: stop, tell the operator, change nothing."""


class InvariantViolationError(StopError):
    """A rule that always holds does not hold: a defect of ours, never the user's fault."""


class LogContinuityError(StopError):
    """The decision log or the routing table is not the continuation of what was read before."""


RESTORE_OR_BEGIN_ANEW: Final = (
    "make sure that Kafka and the lease store are this cluster's; if they are, restore the decision log, or begin a "
    "new cluster: delete this one's topics and its keys in the lease store"
)
"""What is left to do where decision log, routing table, snapshots and lease store do not belong together."""


class UnsupportedFeatureLevelError(StopError):
    """The log holds decisions of a feature level that this version does not know: upgrade before reading on."""


class UnknownSlotPolicyError(StopError):
    """The log names a slot policy that this controller does not have: it must not lead."""


class UserError(ControlPlaneError):
    """The user can mend it: a wrong setting, a missing package, a missing program."""


class ConfigurationError(UserError):
    """A setting is out of range or contradicts another one."""


class NotAllowedError(ConfigurationError):
    """Kafka does not allow a principal to do something.

    Args:
        principal: who, as Kafka writes it, or in words where only Kafka knows.
        operation: the verb, such as ``read``.
        what: its object, such as ``topic demo.decisions``.
        code: how Kafka calls the refusal.
    """

    def __init__(self, principal: str, operation: str, what: str, code: str) -> None:
        """Say who lacks what, and how it is given."""
        grantee = principal if principal.startswith("User:") else "User:NAME"
        super().__init__(
            f"Kafka does not allow {principal} to {operation} {what} ({code}): 'controlplane acls show' says which "
            "role needs it, and a super user of Kafka gives the role with "
            f"'controlplane acls apply --principal ROLE={grantee}'"
        )


class PrerequisiteError(UserError):
    """Something outside the package is missing: Java, a free port, a writable folder."""


class MissingExtraError(UserError):
    """A part of the package needs an optional dependency that is not installed.

    Args:
        extra: the name of the extra, as in ``pip install 'controlplane[extra]'``.
        needed_for: what the caller wanted to do, in a few words.
    """

    def __init__(self, extra: str, needed_for: str) -> None:
        """Say which extra to install and for what."""
        super().__init__(f"{needed_for} needs an optional part: pip install 'controlplane[{extra}]'")
        self.extra = extra
