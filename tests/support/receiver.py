"""Receivers of webhooks on loopback: real servers, each on a port that the machine chose."""

import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


@dataclass
class Receiver:
    """An HTTP server that keeps what it got, and answers as the test says.

    Attributes:
        at: Address and port; port 0: one that the machine chooses.
        answers: (status, headers, body) for each request in order; the last one goes on for ever.
    """

    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=lambda: [(204, {}, b"")])
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    names: list[str | None] = field(default_factory=list)
    at: tuple[str, int] = ("127.0.0.1", 0)

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                status, headers, said = receiver.answers[0]
                if len(receiver.answers) > 1:
                    receiver.answers.pop(0)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(said)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # a sender that breaks off is part of the tests
                pass

        self._server = Server(self.at, Handler)
        if self.tls is not None:
            self.tls.sni_callback = lambda _socket, name, _context: self.names.append(name)
            self._server.socket = self.tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(30)

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


class Raw:
    """A server that does with each connection what `speak` does; what ends it is its own affair."""

    def __init__(self, speak: Callable[[socket.socket], None]) -> None:
        self._speak = speak
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.broken = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve_connection, args=(connection,), daemon=True).start()

    def _serve_connection(self, connection: socket.socket) -> None:
        with connection:
            try:
                self._speak(connection)
            except OSError:
                self.broken.set()

    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}/"
