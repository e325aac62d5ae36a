"""One key of a tenant, as the benchmarks of the service ask with it."""

import contextlib
import http.client
import json
import socket
from dataclasses import dataclass


@dataclass
class Caller:
    """One key of a tenant.

    Attributes:
        secret: Its text.
    """

    port: int
    secret: str

    def head(self, method: str, path: str, **headers: object) -> bytes:
        """A request's head, as it is sent."""
        given = {"Host": "127.0.0.1", "Authorization": f"Bearer {self.secret}", **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in given.items())]
        return "\r\n".join([*lines, "", ""]).encode()

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        """Return the body of the answer to a request on a new connection.

        Raises:
            RuntimeError: it was refused.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            named = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json", **headers}
            connection.request(method, path, body or None, named)
            answer = connection.getresponse()
            text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{answer.status}: {text[:200]!r}")
        return text

    def submit(self) -> str:
        """A run that waits for a worker."""
        return str(json.loads(self.ask("POST", "/v1/runs", b'{"source": "x = 1\\n"}'))["id"])

    def open_connection(self, *pieces: bytes) -> socket.socket:
        """A connection on which this was sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), 120)
        with contextlib.suppress(OSError):
            for piece in pieces:
                connection.sendall(piece)
        return connection

    def stream(self, run: str) -> socket.socket:
        """A stream of the run's events."""
        return self.open_connection(self.head("GET", f"/v1/runs/{run}/events", Accept="text/event-stream"))
