"""The life of the demo's processes: nothing is ever left over, and ``--keep`` leaves exactly what runs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from controlplane.cli.demo.processes import DemoProcess, find_holder, stop_held
from tests.helpers.polling import poll_until

ROOT = Path(__file__).resolve().parents[3]
WAITS = "import signal, time; print('up', flush=True); signal.pause()"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), exit(0))); "

OTHER_PROCESS = """
import os, signal, sys
from pathlib import Path
from controlplane.cli.demo.processes import DemoProcess, hand_over
folder = Path(sys.argv[1])
processes = [
    DemoProcess(name, [sys.executable, "-c", sys.argv[2]], folder, os.environ, folder) for name in ("first", "second")
]
print(*(process.process_id for process in processes), flush=True)
if sys.argv[3] == "keep":
    hand_over([processes[:1], processes[1:]], folder)
else:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], DemoProcess]]:
    """Starts a Python program as a process of the demo."""
    started: list[DemoProcess] = []

    def start_process(program: str) -> DemoProcess:
        started.append(DemoProcess("part", [sys.executable, "-c", program], tmp_path, os.environ, tmp_path))
        return started[-1]

    yield start_process
    for process in started:
        process.stop()


def run_other(folder: Path, ending: str) -> list[psutil.Process]:
    """Another Python starts two processes, and ends; these are the two, or those of them that have not ended yet."""
    command = [sys.executable, "-c", OTHER_PROCESS, str(folder), STUBBORN + WAITS, ending]
    # With a pipe for both outputs: a kept process that held one of them would keep this waiting.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    process_ids = done.stdout.split()
    assert len(process_ids) == 2, done.stderr
    found = []
    for process_id in process_ids:
        try:
            found.append(psutil.Process(int(process_id)))
        except psutil.NoSuchProcess:
            assert ending != "keep"
    return found


def gone(process: psutil.Process) -> bool:
    """Whether it runs no more."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_start_that_is_interrupted_leaves_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may come before the process id: nobody is told of the process then, so nobody else could stop it."""
    keepers: list[subprocess.Popen[str]] = []
    kept: list[psutil.Process] = []

    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *words: object, **options: object) -> None:
            super().__init__(*words, **options)  # type: ignore[call-overload] # whatever it is started with
            keepers.append(self)
            monkeypatch.setattr(self.stdout, "readline", self.interrupt, raising=False)

        def interrupt(self) -> str:
            poll_until(psutil.Process(self.pid).children)
            kept.extend(psutil.Process(self.pid).children())
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("controlplane.cli.demo.processes.subprocess.Popen", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            DemoProcess("part", [sys.executable, "-c", WAITS], tmp_path, os.environ, tmp_path)
    assert [keeper.poll() is not None for keeper in keepers] == [True]
    assert [gone(process) for process in kept] == [True]


def test_killed_process_is_gone_at_once(start: Callable[[str], DemoProcess]) -> None:
    """A kill is a crash, and it is expected: the demo must not take it for a failure."""
    process = start(WAITS)
    poll_until(lambda: "up" in process.log_tail())
    process.kill()
    assert not process.running
    assert not process.ended_unasked
    assert not psutil.pid_exists(process.process_id)


def test_process_that_ends_by_itself_is_noticed(start: Callable[[str], DemoProcess]) -> None:
    """A part that fell over is what the reader of a failed demo wants to know, with its last words."""
    process = start("raise SystemExit('cannot go on')")
    poll_until(lambda: not process.running)
    assert process.ended_unasked
    assert "cannot go on" in process.log_tail()


def test_stopped_process_is_asked_first(start: Callable[[str], DemoProcess]) -> None:
    """A node that is stopped leaves the cluster in order."""
    process = start(STUBBORN + WAITS)
    poll_until(lambda: "up" in process.log_tail())
    process.stop()
    process.stop()
    assert process.log_tail().splitlines() == ["up", "asked"]
    assert not process.ended_unasked


def test_killing_the_demo_ends_its_processes(tmp_path: Path) -> None:
    """SIGKILL leaves no time to tidy up, and still nothing may be left over."""
    processes = run_other(tmp_path, "die")
    poll_until(lambda: all(gone(process) for process in processes))


def test_kept_processes_outlive_the_demo_and_end_when_told(tmp_path: Path) -> None:
    """``--keep`` and ``--stop``: they live on without the demo, and are asked to end."""
    processes = run_other(tmp_path, "keep")
    assert len(processes) == 2
    assert not any(gone(process) for process in processes)
    held = json.loads((tmp_path / "held.json").read_text())
    assert held["processes"] == {"first": processes[0].pid, "second": processes[1].pid}
    poll_until(lambda: "up" in (tmp_path / "first.log").read_text())
    assert stop_held(tmp_path)
    assert all(gone(process) for process in processes)
    assert find_holder(tmp_path) is None
    assert not stop_held(tmp_path)
    assert "asked" in (tmp_path / "first.log").read_text()


def test_killing_the_holder_ends_what_it_holds(tmp_path: Path) -> None:
    """Also what was kept is never left without somebody who ends it."""
    processes = run_other(tmp_path, "keep")
    holder = find_holder(tmp_path)
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)
    poll_until(lambda: all(gone(process) for process in processes))


def test_number_of_a_former_holder_is_not_taken_for_it(tmp_path: Path) -> None:
    """Process ids are used again: ``--stop`` must not end a stranger."""
    held = {"holder": os.getpid(), "created_s": 12345.0, "processes": {}}
    (tmp_path / "held.json").write_text(json.dumps(held))
    assert find_holder(tmp_path) is None
    assert not stop_held(tmp_path)
