"""What an operator puts before the service: TLS, ended by a server of the test's own that hands each request on."""

import http.client
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import trustme

OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding"}
"""Headers that are not handed on (RFC 9110, 7.6.1)."""


class Front:
    """Serves `https://localhost:PORT` until it is left; `inner` is the port of the plain server behind it.

    Attributes:
        cookies: Every Set-Cookie that went over the wire, as it stood there.
    """

    def __init__(self, authority: trustme.CA) -> None:
        self.inner = 0
        self.cookies: list[str] = []
        self.trusts = ssl.create_default_context()
        authority.configure_trust(self.trusts)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("localhost").configure_cert(self._tls)

    def __enter__(self) -> Self:
        front = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                inner = http.client.HTTPConnection("127.0.0.1", front.inner, timeout=60)
                sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                inner.request(self.command, self.path, sent, dict(self.headers))
                answer = inner.getresponse()
                body = answer.read()
                inner.close()
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in OF_ONE_CONNECTION:
                        self.send_header(name, value)
                front.cookies += answer.headers.get_all("Set-Cookie") or []
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                self.do_GET()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = self._tls.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://localhost:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(30)
