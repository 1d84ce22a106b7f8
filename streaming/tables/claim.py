"""One pipeline writes the tables of a folder: a claim that is stored beside them and renewed while it lasts.

The claim is the newest commit of a Delta table without rows, because a Delta commit is atomic on every storage: of two
claimants that have seen the same commit only one can write the next. No two machines' clocks are compared: a claim is
given up for lost when it did not change while a claimant watched it, by its own clock, for as long as one lasts. On the
claim's own machine it is enough that its process is gone.
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

import structlog
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType

from controlplane.errors import ControlPlaneError, FencedError, PrerequisiteError
from streaming.error_texts import HOW_TO_MEND, NO_SPACE, full_disk
from streaming.storage import StoragePath

RENEWAL_INTERVAL_S: Final = 10.0
"""How often a claim is renewed."""
CLAIM_LASTS_S: Final = 3 * RENEWAL_INTERVAL_S
"""A claim that was not renewed for so long is lost: its holder stops by then, and another one may take it."""

_FOLDER: Final = "_claim"
_APP_ID: Final = "controlplane.pipeline"
_LOOK_INTERVAL_S: Final = 1.0
_PROPERTIES: Final = {"delta.checkpointInterval": "100", "delta.logRetentionDuration": "interval 1 hours"}

_STORAGE: Final = {"timeout": "5s", "retry_timeout": "8s"}
"""Of an object store: a renewal that gets no answer has failed before the next one is due."""

_log = structlog.get_logger(__name__)


class Holder(NamedTuple):
    """A process that holds a claim, or has released it.

    Attributes:
        token: names the claim.
        machine: the machine, and what numbers its processes.
        pid: the process's number there.
        released: ``yes`` once it has ended as it should.
    """

    token: str
    machine: str
    pid: str
    released: str = ""

    @classmethod
    def this_process(cls) -> Self:
        """A new claim of this process."""
        return cls(uuid.uuid4().hex, _machine(), str(os.getpid()))

    @property
    def is_gone(self) -> bool:
        """Whether it has released the claim, or was a process of this machine that runs no more."""
        return bool(self.released) or (self.machine == _machine() and not _runs(int(self.pid)))


class Claim:
    """The claim of one process on the tables of a folder. Its methods are called by one thread at a time.

    Args:
        tables_dir: the folder.
        holder: the process.
        monotonic_s: this machine's monotonic clock.
    """

    def __init__(
        self, tables_dir: StoragePath, holder: Holder, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Open the table of claims, or make it.

        Raises:
            PrerequisiteError: the folder cannot be read or written.
        """
        self._place = str(tables_dir)
        self._holder = holder
        self._monotonic_s = monotonic_s
        self._renewed_at_s = monotonic_s()
        self._failure = ""
        folder = str(tables_dir / _FOLDER)
        try:
            self._table = _opened(folder)
        except (DeltaError, OSError) as error:
            raise _unclaimable(self._place, error) from error

    def take(self, wait: Callable[[float], bool]) -> bool:
        """Take it: at once if it is free, else when its holder has not renewed it for :data:`CLAIM_LASTS_S`.

        Args:
            wait: waits so many seconds; true: there is no use in waiting any longer.

        Returns:
            Whether it is taken; false: the waiting was ended.

        Raises:
            PrerequisiteError: its holder renews it, or another process took it first.
        """
        watched_until_s = self._monotonic_s() + CLAIM_LASTS_S
        version, holder = self._table.version(), self._newest()
        if holder is not None and not holder.is_gone:
            _log.warning("another pipeline has claimed the tables: waiting for its claim to end", holder=_named(holder))
        while holder is not None and not holder.is_gone and self._monotonic_s() < watched_until_s:
            if wait(_LOOK_INTERVAL_S):
                return False
            self._refresh()
            if self._table.version() != version:
                version, holder = self._table.version(), self._newest()
                if holder is not None and not holder.is_gone:
                    raise self._refused(holder)
        try:
            self._commit(self._holder)
        except CommitFailedError as error:
            message = f"another pipeline has just claimed the tables in {self._place}; {HOW_TO_MEND}"
            raise PrerequisiteError(message) from error
        return True

    def renew(self) -> None:
        """Renew it; what keeps it from being renewed is told, and tried again with the next turn.

        Raises:
            FencedError: another process has it, or it could not be renewed for :data:`CLAIM_LASTS_S`.
            PrerequisiteError: likewise, because the disk is full.
        """
        is_taken = False
        try:
            is_taken = not self._is_renewed()
        except Exception as error:  # noqa: BLE001 - delta-rs raises errors of many kinds
            self._failure = str(error)
            _log.warning("the claim on the tables is renewed later", error=self._failure)
        if is_taken:
            message = f"another pipeline has taken the claim on the tables in {self._place}; {HOW_TO_MEND}"
            raise FencedError(message)
        self.refuse_lapsed()

    def refuse_lapsed(self) -> None:
        """Check that no other process may have it by now; called by any thread.

        Raises:
            PrerequisiteError: it could not be renewed, because the disk is full.
            FencedError: it could not be renewed for :data:`CLAIM_LASTS_S`.
        """
        if self._monotonic_s() - self._renewed_at_s < CLAIM_LASTS_S:
            return
        if NO_SPACE in self._failure:
            raise PrerequisiteError(full_disk(self._place))
        why = self._failure or "the storage does not answer"
        message = f"the claim on the tables in {self._place} could not be renewed for {CLAIM_LASTS_S:g} s"
        raise FencedError(f"{message}: {why}; {HOW_TO_MEND}")

    def _is_renewed(self) -> bool:
        """Commit once more; false: another process has it."""
        try:
            self._commit(self._holder)
        except CommitFailedError:
            self._refresh()
            newest = self._newest()
            if newest is None or newest.token != self._holder.token:
                return False
            # An earlier renewal came to be although its answer did not come.
            self._commit(self._holder)
        return True

    def release(self) -> None:
        """Give it up, so that the next process need not wait; it does no harm if that fails."""
        try:
            self._commit(self._holder._replace(released="yes"))
        except Exception as error:  # noqa: BLE001 - delta-rs raises errors of many kinds
            _log.warning("the claim on the tables is left to lapse", error=str(error))

    def _refresh(self) -> None:
        try:
            self._table.update_incremental()
        except (DeltaError, OSError) as error:
            raise _unclaimable(self._place, error) from error

    def _newest(self) -> Holder | None:
        (commit,) = self._table.history(1)
        return Holder(*(commit[name] for name in Holder._fields)) if "token" in commit else None

    def _commit(self, holder: Holder) -> None:
        began_s = self._monotonic_s()
        number = self._table.transaction_version(_APP_ID)
        self._table.create_write_transaction(
            [],
            mode="append",
            schema=self._table.schema(),
            commit_properties=CommitProperties(
                custom_metadata=holder._asdict(),
                app_transactions=[Transaction(_APP_ID, 0 if number is None else number + 1)],
            ),
        )
        self._renewed_at_s = began_s
        self._refresh()

    def _refused(self, holder: Holder) -> PrerequisiteError:
        return PrerequisiteError(
            f"another pipeline writes the tables in {self._place}: {_named(holder)}. Stop it first, or give this one "
            "another folder"
        )


def _opened(folder: str) -> DeltaTable:
    """The table of claims, made if need be; ``is_deltatable`` would hold every thread while a store does not answer."""
    try:
        return DeltaTable(folder, storage_options=_STORAGE)
    except TableNotFoundError:
        schema = Schema([Field("token", PrimitiveType("string"))])
        DeltaTable.create(folder, schema, mode="ignore", configuration=_PROPERTIES, storage_options=_STORAGE)
        return DeltaTable(folder, storage_options=_STORAGE)


@contextmanager
def claimed(tables_dir: StoragePath, stop: threading.Event) -> Iterator[bool]:
    """Hold the claim on the tables of a folder within the block.

    Args:
        tables_dir: the folder.
        stop: ends the waiting for the claim; it is set when the claim is lost, and has to end the block.

    Yields:
        Whether the claim is held; false: ``stop`` was set before.

    Raises:
        PrerequisiteError: another pipeline has it, or the folder cannot be read or written, or its disk is full.
        FencedError: it was lost within the block.
    """
    claim = Claim(tables_dir, Holder.this_process())
    if not claim.take(stop.wait):
        yield False
        return
    ended, errors = threading.Event(), list[ControlPlaneError]()

    def take_turns(step: Callable[[], None], interval_s: float) -> None:
        while not ended.wait(interval_s):
            try:
                step()
            except (FencedError, PrerequisiteError) as error:
                errors.append(error)
                stop.set()
                return

    # A renewal may hang, so what it has come to is looked at by another thread.
    turns = ((claim.renew, RENEWAL_INTERVAL_S), (claim.refuse_lapsed, _LOOK_INTERVAL_S))
    threads = [threading.Thread(target=take_turns, args=turn, name="claim", daemon=True) for turn in turns]
    for thread in threads:
        thread.start()
    try:
        yield True
    finally:
        ended.set()
        for thread in threads:
            thread.join(RENEWAL_INTERVAL_S)
        if not errors:
            claim.release()
    if errors:
        raise errors[0]


def _machine() -> str:
    """What tells the processes of this machine, or of this container, from those of others."""
    numbering, boot = Path("/proc/self/ns/pid"), Path("/proc/sys/kernel/random/boot_id")
    if not (numbering.exists() and boot.exists()):
        return f"{socket.gethostname()}/{uuid.getnode()}"
    return f"{socket.gethostname()}/{numbering.stat().st_ino}/{boot.read_text(encoding='ascii').strip()}"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _named(holder: Holder) -> str:
    return f"process {holder.pid} on {holder.machine.partition('/')[0]}"


def _unclaimable(place: str, error: Exception) -> PrerequisiteError:
    return PrerequisiteError(f"the folder of the tables, {place}, cannot be claimed: {error}; {HOW_TO_MEND}")
