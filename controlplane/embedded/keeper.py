"""A small process between the starting process and a server, so that the server never outlives the starting process.

Run by path as ``python keeper.py LOG_FILE GRACE_S COMMAND...``, standard library only. Its standard input is a pipe
whose other end only the starting process holds. When that end closes, because the server is to stop or because the
starting process died, even of SIGKILL, the keeper ends the server. It prints the server's process id as one line, and
ends with the server's exit code. (A death signal set with prctl works on Linux only, and is bound to a thread.)
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path


def keep(log_path: Path, grace_s: float, command: Sequence[str]) -> int:
    """Run the command until it ends or standard input closes; see the module.

    Args:
        log_path: the server's output is appended to it.
        grace_s: how long the server may take to end after SIGTERM before SIGKILL.
        command: the server's program and arguments.

    Returns:
        The exit code; 128 + n if signal n ended the server.
    """
    with log_path.open("ab") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    threading.Thread(target=_end_when_abandoned, args=(server, grace_s), daemon=True).start()
    # The starting process may be interrupted or die before it reads this; standard input is closed as well then.
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), f"{server.pid}\n".encode())
    code = server.wait()
    return code if code >= 0 else 128 - code


def _end_when_abandoned(server: "subprocess.Popen[bytes]", grace_s: float) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    server.send_signal(signal.SIGTERM)
    # A server that was paused with SIGSTOP receives SIGTERM only when it is resumed.
    server.send_signal(signal.SIGCONT)
    try:
        server.wait(grace_s)
    except subprocess.TimeoutExpired:
        server.kill()


if __name__ == "__main__":
    # The starting process decides when its servers stop, not a Ctrl-C in its terminal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(keep(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
