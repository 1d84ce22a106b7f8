"""One pipeline at a time: claims on a folder, and in an object store, by processes that run, end, die and hang."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from controlplane.errors import FencedError, PrerequisiteError
from streaming.storage import ObjectPath, StoragePath
from streaming.tables import claim as claims
from streaming.tables.claim import CLAIM_LASTS_S, RENEWAL_INTERVAL_S, Claim, Holder, claimed
from streaming.tables.created_tables import create_missing
from tests.helpers.s3_server import s3_server


class Clock:
    """A monotonic clock that goes on where a test waits."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.waited_s = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s

    def wait(self, seconds: float) -> bool:
        """Let time pass, as an event that is not set does it."""
        self.now_s += seconds
        self.waited_s += seconds
        return False


def elsewhere(token: str) -> Holder:
    """A process of another machine."""
    return Holder(token, "elsewhere/1", "7")


def failing(message: str) -> Callable[..., None]:
    """What a storage does that cannot."""

    def fail(*_: object) -> None:
        raise OSError(message)

    return fail


@pytest.fixture(params=["folder", pytest.param("object store", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoragePath]:
    """A place for tables."""
    if request.param == "folder":
        yield tmp_path
        return
    with s3_server(tmp_path, "tables") as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield ObjectPath("tables", "delta")


def test_what_is_free_is_taken_at_once(place: StoragePath) -> None:
    """Never claimed, and released."""
    for token in ("a", "b"):
        clock = Clock()
        claim = Claim(place, elsewhere(token), clock)
        claim.take(clock.wait)
        claim.renew()
        claim.release()
        assert clock.waited_s == 0


def test_what_is_renewed_is_refused(place: StoragePath) -> None:
    """As soon as it is renewed, with the process that has it."""
    first = Claim(place, elsewhere("a"))
    first.take(Clock().wait)
    clock = Clock()

    def wait(seconds: float) -> bool:
        if clock.now_s > 3:
            first.renew()
        return clock.wait(seconds)

    with pytest.raises(PrerequisiteError, match=r"another pipeline writes the tables in .*: process 7 on elsewhere"):
        Claim(place, elsewhere("b"), clock).take(wait)
    assert clock.waited_s < 6
    first.renew()


def test_what_is_not_renewed_is_taken_after_its_time(place: StoragePath) -> None:
    """And its former holder learns of it with its next renewal."""
    first = Claim(place, elsewhere("a"))
    first.take(Clock().wait)
    clock = Clock()
    second = Claim(place, elsewhere("b"), clock)
    second.take(clock.wait)
    assert clock.waited_s == CLAIM_LASTS_S
    with pytest.raises(FencedError, match="another pipeline has taken the claim"):
        first.renew()
    second.renew()


def test_of_two_that_have_waited_one_takes_it(place: StoragePath) -> None:
    """Both have seen the same claim lapse."""
    Claim(place, elsewhere("gone")).take(Clock().wait)
    clock = Clock()
    second = Claim(place, elsewhere("b"), clock)

    def time_of_first() -> float:
        """Its last look at the time, before it takes the claim, is when the other one takes it."""
        if clock.now_s == CLAIM_LASTS_S:
            second.take(clock.wait)
        return clock.now_s

    with pytest.raises(PrerequisiteError, match="another pipeline has just claimed the tables"):
        Claim(place, elsewhere("a"), time_of_first).take(clock.wait)
    second.renew()


def test_a_process_of_this_machine_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    """A pipeline that was killed is started again at once; one that runs is waited for."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    Claim(tmp_path, Holder.this_process()._replace(pid=str(child.pid))).take(Clock().wait)
    clock = Clock()

    def wait(seconds: float) -> bool:
        if clock.now_s == 2:
            child.communicate(b"\n")
        return clock.wait(seconds)

    Claim(tmp_path, elsewhere("b"), clock).take(wait)
    assert clock.waited_s == 3


def test_what_cannot_be_renewed_is_lost_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A storage that is away for a moment is borne."""
    clock = Clock()
    claim = Claim(tmp_path, elsewhere("a"), clock)
    claim.take(clock.wait)

    monkeypatch.setattr(claim, "_commit", failing("away"))
    clock.wait(CLAIM_LASTS_S - 1)
    claim.renew()
    clock.wait(1)
    with pytest.raises(FencedError, match="could not be renewed for 30 s: away"):
        claim.renew()


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not as a claim that was lost."""
    clock = Clock()
    claim = Claim(tmp_path, elsewhere("a"), clock)
    claim.take(clock.wait)

    monkeypatch.setattr(claim, "_commit", failing("No space left on device (os error 28)"))
    claim.renew()
    clock.wait(CLAIM_LASTS_S)
    with pytest.raises(PrerequisiteError, match="is full: make room"):
        claim.refuse_lapsed()


def test_a_renewal_whose_answer_was_lost_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit came to be, and what it said did not come back; the next one counts from its own time on."""
    clock = Clock()
    claim = Claim(tmp_path, elsewhere("a"), clock)
    claim.take(clock.wait)

    with monkeypatch.context() as patch:
        patch.setattr(Claim, "_renewed_at_s", property(lambda _: 0.0, failing("the answer is lost")), raising=False)
        clock.wait(RENEWAL_INTERVAL_S)
        claim.renew()
    clock.wait(RENEWAL_INTERVAL_S)
    claim.renew()
    clock.wait(CLAIM_LASTS_S - 1)
    claim.refuse_lapsed()
    claim.renew()

    def renew_meanwhile(_: float) -> bool:
        claim.renew()
        return False

    with pytest.raises(PrerequisiteError, match="another pipeline writes the tables"):
        Claim(tmp_path, elsewhere("b")).take(renew_meanwhile)


def test_a_renewal_that_hangs_ends_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have the claim by then."""
    monkeypatch.setattr(claims, "RENEWAL_INTERVAL_S", 0.01)
    monkeypatch.setattr(claims, "_LOOK_INTERVAL_S", 0.01)
    monkeypatch.setattr(claims, "CLAIM_LASTS_S", 0.05)
    hang, stop = threading.Event(), threading.Event()
    monkeypatch.setattr(Claim, "renew", lambda _: hang.wait(10))
    with (
        pytest.raises(FencedError, match="the storage does not answer"),
        claimed(tmp_path, stop),
    ):
        assert stop.wait(10)
    hang.set()


def make_tables(place: ObjectPath) -> object:
    """What a pipeline does under its claim."""
    return create_missing(place, bucket_count=2)


def make_claim(place: ObjectPath) -> object:
    """What it does before."""
    return Claim(place, elsewhere("a"))


@pytest.mark.parametrize("opened", [make_claim, make_tables])
def test_a_store_that_does_not_answer_holds_no_other_thread(
    monkeypatch: pytest.MonkeyPatch, opened: Callable[[ObjectPath], object]
) -> None:
    """Or the claim would neither be renewed nor be known to have lapsed."""

    def ask() -> None:
        with suppress(PrerequisiteError):
            opened(ObjectPath("tables", "eu"))

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        for name in ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "any")
        monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        thread = threading.Thread(target=ask, daemon=True)
        began_s = time.monotonic()
        thread.start()
        connection, _ = server.accept()
        with connection:
            time.sleep(0.5)
            assert thread.is_alive()
            assert time.monotonic() - began_s < 4, "the limit of a request is 5 s, or more"


def test_who_loses_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block is told, and its end raises."""

    def lose(_: Claim) -> None:
        raise FencedError("another pipeline has taken the claim")

    monkeypatch.setattr(claims, "RENEWAL_INTERVAL_S", 0.01)
    monkeypatch.setattr(Claim, "renew", lose)
    stop = threading.Event()
    with pytest.raises(FencedError, match="another pipeline has taken the claim"), claimed(tmp_path, stop):
        assert stop.wait(10)


def test_a_pipeline_that_waits_can_be_stopped(tmp_path: Path) -> None:
    """It ends, and leaves the claim to its holder."""
    first, stop = Claim(tmp_path, elsewhere("a")), threading.Event()
    first.take(Clock().wait)
    stop.set()
    with claimed(tmp_path, stop) as is_held:
        assert not is_held
    first.renew()


def test_a_block_that_ends_leaves_the_claim_free(tmp_path: Path) -> None:
    """Also one that fails."""
    with pytest.raises(ZeroDivisionError), claimed(tmp_path, threading.Event()):
        _ = 1 / 0
    clock = Clock()
    Claim(tmp_path, elsewhere("b"), clock).take(clock.wait)
    assert clock.waited_s == 0


def test_the_machine_tells_processes_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The number of a process counts on its own machine only."""
    Claim(tmp_path, elsewhere("a")._replace(pid="999999999")).take(Clock().wait)
    clock = Clock()
    Claim(tmp_path, Holder.this_process(), clock).take(clock.wait)
    assert clock.waited_s == CLAIM_LASTS_S
