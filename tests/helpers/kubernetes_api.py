"""A stand-in for the API of Kubernetes: it takes what it is given to create, and runs nothing."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

_READY: Final = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class KubernetesApi(ThreadingHTTPServer):
    """Serves on a free port of this machine from the beginning of a ``with`` block to its end.

    Attributes:
        created: the objects that were posted, in their order.
        asked: ``(method, path)`` of all requests.
    """

    daemon_threads = True

    def __init__(self) -> None:
        """Open the port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.created: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        """Begin to answer."""
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, with the watches that are open."""
        self.ended.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: KubernetesApi

    def do_POST(self) -> None:
        """Create: the object as it was sent, with what the server adds."""
        sent = json.loads(self._body())
        self.server.created.append(sent)
        self._answer(201, sent | {"metadata": sent["metadata"] | {"uid": "1", "resourceVersion": "1"}})

    def do_GET(self) -> None:
        """One object by its name; of any kind there are none, and nothing ever happens to one."""
        url = urlsplit(self.path)
        *_, kind, name = url.path.split("/")
        if "watch" in parse_qs(url.query):
            self.server.asked.append(("WATCH", url.path))
            self.send_response(200)
            self.end_headers()
            if "Upgrade" not in self.headers:  # refused an upgrade, the client asks again without
                self.server.ended.wait()
        elif kind == "pods":
            metadata = {"name": name, "namespace": "controlplane", "uid": "of-the-driver"}
            self._answer(200, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": _READY})
        else:
            self._answer(200, {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})

    def do_DELETE(self) -> None:
        """Delete whatever is asked for."""
        self._body()
        self._answer(200, {"apiVersion": "v1", "kind": "Status", "status": "Success"})

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        self.server.asked.append((self.command, urlsplit(self.path).path))
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
