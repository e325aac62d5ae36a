"""What a service answers drives no terminal and is no markup, also on the line that tells how a run stands."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

EVIL = "[link=https://evil.example][red]x[/red][/link]\x1b[2J\x1b]0;owned\x07\u202e\r\nforged"
RUN = {
    "id": f"run_{EVIL}", "status": EVIL, "ended": False, "entry": EVIL, "created_at": EVIL, "finished_at": None,
    "labels": {}, "findings": {}, "error": None, "links": {},
}  # fmt: skip


class Hostile(http.server.BaseHTTPRequestHandler):
    """Says of every run the same; the second time it has ended."""

    asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).asked = 0
        self._say(202, RUN)

    def do_GET(self) -> None:
        type(self).asked += 1
        if "/findings" in self.path:
            self._say(200, {"items": [], "next_cursor": None})
        elif self.path.startswith("/v1/runs?"):
            self._say(200, {"items": [RUN], "next_cursor": None})
        else:
            self._say(200, RUN | {"ended": self.asked > 1})

    def _say(self, status: int, told: object) -> None:
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base's name
        """Nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def in_a_terminal(*words: str) -> str:
    """What the command wrote to a terminal."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "backprobe", *words],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 1 << 16):
            said += piece
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    process.wait()
    return said.decode()


@pytest.mark.usefixtures("fresh_python")
@pytest.mark.parametrize("words", [("submit", "{path}", "--wait", "30"), ("runs",)], ids=["submit", "runs"])
def test_what_a_service_says_of_a_run_is_shown_as_it_is(url, words, tmp_path) -> None:
    path = tmp_path / "train.py"
    path.write_text("x = 1\n")
    said = in_a_terminal(*(word.format(path=path) for word in words), "--url", url)
    assert "[link=https://evil.example][red]x" in said
    for driven in ("\x1b[2J", "\x1b]0;", "\x1b]8;", "\x1b[31m", "\x07", "\u202e"):
        assert driven not in said, repr(said)
    assert "forged" not in [line.strip() for line in said.splitlines()]
