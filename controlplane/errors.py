"""Every exception that the project raises, grouped by what the caller must do.

    ControlPlaneError
    ├── RetryableError                   try the same thing again later
    │   ├── LogUnavailableError          Kafka did not answer in time
    │   ├── LeaseStoreUnavailableError   Redis did not answer in time
    │   └── NoRouteError                 the routing table has no node for this key yet
    ├── FencedError                      stop writing at once and stand for election again: another writer took over
    ├── PlacementRefusedError            leave the slot table as it is: the policy cannot make one from its input
    ├── InvalidInputError                refuse this one input (dead letter) and continue with the next
    ├── StopError                        stop the process and find the cause: continuing would do harm
    │   ├── SupersededError              another process has joined under this node's name
    │   ├── InvariantViolationError      our own state contradicts itself
    │   ├── LogContinuityError           the log is not the one that was read before (recreated, gap, broken chain)
    │   ├── UnsupportedFeatureLevelError the log was written by a newer version
    │   └── UnknownSlotPolicyError       the log names a slot policy that this controller does not have
    └── UserError                        change the call, the configuration or the machine
        ├── ConfigurationError           a setting is wrong or contradicts another
        │   └── NotAllowedError          Kafka denies this principal the operation
        ├── UnroutableError              a lookup needs a newer version of this process, or asks for an unknown address
        ├── MissingExtraError            an optional part of the package is not installed
        └── PrerequisiteError            something outside the package is missing (Java, a free port, a folder)

A message says what was wrong, where, and what to do about it.
"""

from typing import Final


class ControlPlaneError(Exception):
    """The base class of every exception that this package raises on purpose."""


class RetryableError(ControlPlaneError):
    """The other side did not answer, or cannot answer now; the same call may succeed later."""


class LogUnavailableError(RetryableError):
    """Kafka did not answer in time."""


class LeaseStoreUnavailableError(RetryableError):
    """Redis did not answer in time."""


class NoRouteError(RetryableError):
    """The routing table has no node for this key (yet).

    There is no table, no owner at the moment, or no such namespace; the message says which.
    """


class FencedError(ControlPlaneError):
    """Kafka or the lease store reports another writer; discard uncommitted work and stand for election again."""


class PlacementRefusedError(ControlPlaneError):
    """A slot policy cannot make a table from its input; the message says why, and the table stays as it is."""


class InvalidInputError(ControlPlaneError):
    """One input record cannot be used.

    Args:
        reason: a short, stable, machine-readable code such as ``unknown_fingerprint``; it becomes a metric label.
        detail: a sentence for people: the field, its value, and what is expected.
    """

    def __init__(self, reason: str, detail: str) -> None:
        """Keep both parts: counters use the reason, and people read the detail."""
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class StopError(ControlPlaneError):
    """Continuing would do harm: stop, inform the operator, change nothing."""


class SupersededError(StopError):
    """Another process has joined under this node's name: this process must end, and must not join again."""


class InvariantViolationError(StopError):
    """A rule that always holds was violated: a defect of this package, never the user's fault."""


class LogContinuityError(StopError):
    """The decision log or the routing table is not the continuation of what was read before."""


RESTORE_OR_BEGIN_ANEW: Final = (
    "make sure that Kafka and the lease store are this cluster's; if they are, restore the decision log, or begin a "
    "new cluster: delete this one's topics and its keys in the lease store "
    "(docs/how-to/survive-silence-and-failures.md has the steps)"
)
"""The remedies if decision log, routing table, snapshots and lease store do not belong together."""


class UnsupportedFeatureLevelError(StopError):
    """The log holds decisions of a feature level that this version does not know: upgrade before reading on."""


class UnknownSlotPolicyError(StopError):
    """The log names a slot policy that this controller does not have: it must not lead."""


class UserError(ControlPlaneError):
    """The user can correct it: a wrong setting, a missing package, a missing program."""


class ConfigurationError(UserError):
    """A setting is out of range or contradicts another one."""


class NotAllowedError(ConfigurationError):
    """Kafka denies a principal an operation.

    Args:
        principal: as Kafka writes it, or a description if only Kafka knows it.
        operation: the verb, such as ``read``.
        what: its object, such as ``topic demo.decisions``.
        code: Kafka's name of the error.
    """

    def __init__(self, principal: str, operation: str, what: str, code: str) -> None:
        """Compose the message: the missing right, and how to grant it."""
        grantee = principal if principal.startswith("User:") else "User:NAME"
        super().__init__(
            f"Kafka does not allow {principal} to {operation} {what} ({code}): 'controlplane acls show' says which "
            "role needs it, and a super user of Kafka gives the role with "
            f"'controlplane acls apply --principal ROLE={grantee}'"
        )


class UnroutableError(UserError):
    """Waiting does not help this lookup: a newer version wrote the row, or the node has no address of that name."""


class PrerequisiteError(UserError):
    """Something outside the package is missing: Java, a free port, a writable folder."""


class MissingExtraError(UserError):
    """A part of the package needs an optional dependency that is not installed.

    Args:
        extra: the name of the extra, as in ``pip install 'controlplane[extra]'``.
        needed_for: what the caller wanted to do, in a few words.
    """

    def __init__(self, extra: str, needed_for: str) -> None:
        """Compose the message: the extra to install, and what for."""
        super().__init__(f"{needed_for} needs an optional part: pip install 'controlplane[{extra}]'")
        self.extra = extra
