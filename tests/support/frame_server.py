"""A small service of recorders over real HTTP, in a thread: it keeps frames as the service does, and can be told to fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from backprobe.record import FrameReader, Record, split

Said = tuple[int, dict[str, Any], dict[str, str]]
"""Status, problem and headers of an answer."""


@dataclass
class Request:
    """One that came."""

    method: str
    path: str
    body: bytes
    key: str | None


@dataclass
class FrameServer:
    """The service.

    Attributes:
        refusal: What a request is answered with instead; None: it is taken.
        hangs: Set: requests are not answered until it is cleared.
        findings: What a run's list of findings has.
    """

    refusal: Callable[[Request], Said | None] = lambda _: None
    findings: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    frames: dict[str, list[bytes]] = field(default_factory=dict)
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    port: int = 0

    def __post_init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, on the port that it had before."""
        self._server = _Server(("127.0.0.1", self.port), _handler(self))
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more; what was kept stays."""
        self.free.set()
        self._server.shutdown()
        self._server.close_all()
        self._server.server_close()
        self._thread.join(30)

    def record(self, run: str) -> Record:
        """What the frames of a run make."""
        reader = FrameReader()
        for frame in self.frames[run]:
            reader.feed(frame)
        found = reader.record()
        assert found is not None
        return found

    def answer(self, request: Request) -> Said:
        """As the service answers."""
        said = self.refusal(request)
        if said is not None:
            return said
        run, _, rest = request.path.removeprefix("/v1/runs/").partition("/")
        if request.method == "GET":
            return 200, {"items": self.findings, "next_cursor": None}, {}
        if not rest:
            known = self.runs.setdefault(run, json.loads(request.body))
            return (201, {}, {}) if known == json.loads(request.body) else (409, {"code": "run-differs"}, {})
        if rest == "end":
            self.ends[run] = json.loads(request.body)
            return 200, {}, {}
        kept, n = self.frames.setdefault(run, []), int(rest.partition("/")[2])
        if n > len(kept):
            return 409, {"code": "frame-missing"}, {"Next-Frame": str(len(kept))}
        for at, frame in enumerate(split(request.body), n):
            if at < len(kept) and kept[at] != frame:
                return 409, {"code": "frame-differs"}, {}
            if at == len(kept):
                kept.append(frame)
        return 204, {}, {"Next-Frame": str(len(kept))}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *arguments: Any) -> None:
        self._open: set[Any] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def close_all(self) -> None:
        """Cut what is connected, as a killed process does."""
        for connection in tuple(self._open):
            self.shutdown_request(connection)

    def handle_error(self, *_: Any) -> None:
        """A connection that was cut is what tests are about."""


def _handler(service: FrameServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, body, self.headers.get("Authorization"))
            service.requests.append(request)
            service.free.wait(120)
            status, told, headers = service.answer(request)
            text = b"" if status == 204 else json.dumps(told).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_PUT  # noqa: N815 - http.server's names
        do_GET = do_PUT  # noqa: N815 - the same

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
