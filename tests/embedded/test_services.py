"""Both services in one folder: one owner at a time, addresses for others, nothing left behind."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from controlplane.embedded.server import HOST, port_is_free
from controlplane.embedded.services import LOCK_FILE, EmbeddedServices, addresses_path, read_addresses
from controlplane.errors import PrerequisiteError

HOLD_PARTS = """
import sys, time
from pathlib import Path
from controlplane.embedded.services import EmbeddedServices
with EmbeddedServices(Path(sys.argv[1])):
    print("up", flush=True)
    time.sleep(90)
"""


@pytest.mark.kafka
@pytest.mark.slow
def test_folder_has_one_owner_and_is_free_after_its_death(tmp_path: Path) -> None:
    """Two brokers on one log destroy it; and after a SIGKILL everything has to be gone and the folder usable again."""
    owner = subprocess.Popen([sys.executable, "-c", HOLD_PARTS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "up\n"
    addresses = read_addresses(tmp_path)
    assert addresses.bootstrap_servers.startswith(f"{HOST}:")
    assert addresses.redis_url.startswith(f"redis://{HOST}:")
    with pytest.raises(PrerequisiteError, match=f"in use by process {owner.pid}:"):
        EmbeddedServices(tmp_path).start()

    descendants = psutil.Process(owner.pid).children(recursive=True)
    assert len(descendants) == 4, "two keepers and two servers"
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    _, alive = psutil.wait_procs(descendants, timeout=12)
    assert alive == []

    looks = os.open(tmp_path / LOCK_FILE, os.O_RDONLY)  # as a command does that asks whether anything runs here
    fcntl.flock(looks, fcntl.LOCK_SH)
    threading.Timer(0.05, os.close, (looks,)).start()
    with EmbeddedServices(tmp_path) as services:
        assert read_addresses(tmp_path) == addresses
        assert (services.bootstrap_servers, services.redis_url) == (addresses.bootstrap_servers, addresses.redis_url)
    assert not addresses_path(tmp_path).exists()
    assert port_is_free(services.brokers[1].port)
    assert port_is_free(services.valkey.port)


@pytest.mark.kafka
def test_failed_start_leaves_nothing_behind(tmp_path: Path) -> None:
    """When one part does not start, the other must not go on running, and the folder must be free again."""
    services = EmbeddedServices(tmp_path)
    (tmp_path / "kafka" / "log").write_text("in the way", encoding="utf-8")
    with pytest.raises(PrerequisiteError, match="could not be formatted"):
        services.start()
    assert not services.valkey.running
    assert not services.brokers[1].running
    assert not addresses_path(tmp_path).exists()
    again = EmbeddedServices(tmp_path)
    began = time.monotonic()
    with pytest.raises(PrerequisiteError) as refused:
        again.start()
    assert "in use" not in str(refused.value)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"redis_url": "redis://127.0.0.1:1/0"})])
def test_damaged_addresses_are_named(tmp_path: Path, content: str) -> None:
    """Other commands trust this file: they have to say that it is the file when it is not usable."""
    with pytest.raises(PrerequisiteError, match="does not exist"):
        read_addresses(tmp_path)
    addresses_path(tmp_path).write_text(content, encoding="utf-8")
    with pytest.raises(PrerequisiteError, match=r"addresses\.json is damaged"):
        read_addresses(tmp_path)
