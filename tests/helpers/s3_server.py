"""An object store with S3's interface, as a process of its own that is reached by HTTP: moto's server."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controlplane.embedded.server import free_port

_START_S: Final = 60.0


@contextmanager
def s3_server(folder: Path, bucket: str) -> Iterator[Mapping[str, str]]:
    """A server with one empty bucket, within the block.

    Args:
        folder: gets its log.
        bucket: the bucket's name.

    Yields:
        The variables of the environment with which clients reach it.
    """
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    log = folder / "s3.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _make_bucket(f"{address}/{bucket}", server, log)
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": "127.0.0.1",
        }
    finally:
        server.kill()
        server.wait()


def _make_bucket(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s and server.poll() is None:
        request = urllib.request.Request(url, method="PUT")  # noqa: S310 - the address of the server started here
        try:
            with urllib.request.urlopen(request, timeout=5):  # noqa: S310 - as above
                return
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError(f"the object store has not started: {log.read_text(errors='replace')[-2_000:]}")
