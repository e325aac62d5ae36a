"""An editor whose service is away, refuses its key, is slow, or answers nonsense: said once, and nothing else breaks."""

import contextlib
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.backprobe.language_server.editors import editor

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("full_tier")]

TRAIN = "import torch\nw = torch.ones(3, requires_grad=True)\n"
UNAUTHORIZED = {"code": "unauthorized", "detail": "There is no such key.", "hint": "Make one.", "status": 401}


@contextlib.contextmanager
def answering(status: int, body: bytes, kind: str = "application/problem+json"):
    """A server that gives every request this answer; its address, and what was asked."""
    asked: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            sent = self.rfile.read(length).decode()
            asked.append((f"{self.command} {self.path}", self.headers.get("authorization") or "", sent))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - as http.server calls them

        def log_message(self, *_args) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def settings(url: str, **service):
    return {"trusted": True, "entries": ["*.py"], "service": {"url": url, **service}}


async def test_a_refused_key_is_said_once_however_often_the_file_is_saved(tmp_path):
    (tmp_path / "w").mkdir()
    with answering(401, json.dumps(UNAUTHORIZED).encode()) as (url, asked):
        async with editor(
            tmp_path / "w", tmp_path / "home", settings(url), {"BACKPROBE_API_KEY": "bp_test"}
        ) as session:
            session.open("train.py", TRAIN)
            for n in range(3):
                before = len(session.statuses) if n else 0
                session.save("train.py")
                await session.status("trouble: the service", before)
            await session.wait_until(lambda: session.messages, "it is said")
            refused = f"the service at {url} refused (401 unauthorized): There is no such key. "
            assert session.messages == [f"Backprobe: {refused}set BACKPROBE_API_KEY to a key of it"]
            await session.wait_until(
                lambda: session.statuses[-1].startswith("trouble: the service"), "the last one is refused"
            )
            assert await session.hints("train.py") == []
        looked = [request for request in asked if request[0].startswith("GET /v1/runs?snippet_sha256=")]
        assert looked and all(sent == "" for _, _, sent in looked)  # by its hash: no text went along
        assert {key for _, key, _ in asked} == {"Bearer bp_test"}


async def test_a_service_that_is_away_is_said(tmp_path):
    (tmp_path / "w").mkdir()
    with socket.socket() as taken:  # bound and not listening: nobody answers there, and nobody else gets the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with editor(tmp_path / "w", tmp_path / "home", settings(url, seconds=2)) as session:
            session.open("train.py", TRAIN)
            session.save("train.py")
            (said,) = await session.wait_until(lambda: session.messages, "it is said")
            assert said.startswith(f"Backprobe: the service at {url}")
            assert "service.seconds" in said or "does not answer" in said


async def test_a_service_that_never_answers_is_given_up_and_the_server_lives(tmp_path):
    (tmp_path / "w").mkdir()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with editor(tmp_path / "w", tmp_path / "home", settings(url, seconds=1)) as session:
            session.open("train.py", TRAIN)
            session.save("train.py")
            assert await session.hints("train.py") == []  # asked while the service keeps silent
            (said,) = await session.wait_until(lambda: session.messages, "it is said")
            assert said == f"Backprobe: the service at {url}: no result within 1 s: try again, or set `service.seconds`"


@pytest.mark.parametrize("body", [b"<html>", b'{"items": [{"id": 1}]}'])
async def test_an_answer_of_another_shape_is_said_and_the_server_lives(tmp_path, body):
    (tmp_path / "w").mkdir()
    with answering(200, body, "application/json") as (url, _):
        async with editor(tmp_path / "w", tmp_path / "home", settings(url)) as session:
            session.open("train.py", TRAIN)
            session.save("train.py")
            (said,) = await session.wait_until(lambda: session.messages, "it is said")
            assert "the service" in said
            assert await session.hints("train.py") == []


async def test_a_project_names_no_service(tmp_path):
    """A cloned repository's address must not be sent the user's text or key: it comes from the editor alone."""
    (tmp_path / "w").mkdir()
    with answering(401, json.dumps(UNAUTHORIZED).encode()) as (url, asked):
        (tmp_path / "w" / "pyproject.toml").write_text(f'[tool.backprobe]\nservice = {{url = "{url}"}}\n')
        async with editor(
            tmp_path / "w", tmp_path / "home", {"trusted": True}, {"BACKPROBE_API_KEY": "bp_test"}
        ) as session:
            session.open("train.py", TRAIN)
            session.save("train.py")
            assert await session.hints("train.py") == []
        assert asked == []
