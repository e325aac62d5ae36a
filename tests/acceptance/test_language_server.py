"""An editor and a running service: submitted on save, found again by its hash, canceled by a newer save."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from backprobe.snippet_digest import snippet_digest
from tests.backprobe.language_server.editors import editor

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.served import Served

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("full_tier")]

MODEL = "import torch\n\n\ndef make():\n    return torch.ones(3, requires_grad=True).double()\n"
TRAIN = "import model\n\nw = model.make()\n(w * 2).sum().backward()\nprint(w.grad)\n"
ENDLESS = "import time\nwhile True:\n    time.sleep(0.1)\n"


def settings(url: str, *, trusted: bool = True) -> dict[str, object]:
    return {"trusted": trusted, "entries": ["jobs/*.py"], "service": {"url": url, "isolation": "none", "seconds": 150}}


async def test_an_editor_shows_what_the_service_found_now_and_another_day(stack: Served, tmp_path: Path):
    folder = tmp_path / "w"
    (folder / "jobs").mkdir(parents=True)
    (folder / "jobs" / "model.py").write_text(MODEL)
    async with editor(folder, tmp_path / "home", settings(stack.url)) as session:
        session.open("jobs/train.py", TRAIN)
        session.save("jobs/train.py")
        await session.status("idle: train.py: succeeded")
        everywhere = [*session.list_diagnostics("jobs/train.py"), *session.list_diagnostics("jobs/model.py")]
        assert "BP101" in {code for code, _ in everywhere}
        (where,) = [name for name in ("jobs/train.py", "jobs/model.py") if session.list_diagnostics(name)]
        found = session.diagnostic(where, "BP101")
        assert found.code_description is not None
        assert found.code_description.href == f"{stack.url}/rules/BP101"
        files = {"jobs/model.py": MODEL.encode(), "jobs/train.py": TRAIN.encode()}
        digest = snippet_digest("jobs/train.py", files).hex()
        (run,) = stack.items("/v1/runs", snippet_sha256=digest)
        page = f"{stack.url}/runs/{run['id']}"
        assert stack.client.get(page).status_code == 200
        assert any(title.endswith("open run") for _line, title, *_rest in await session.lenses("jobs/train.py"))
        await session.command("backprobe.openRun", page)
        assert session.client.shown_documents[-1].uri == page
        await session.command("backprobe.openRun", "https://elsewhere.example/")
        assert session.client.shown_documents[-1].uri == page
        shown = session.list_diagnostics(where)

    assert stack.items("/v1/runs", snippet_sha256=hashlib.sha256(b"another").hexdigest()) == []
    assert stack.client.get("/v1/runs", params={"snippet_sha256": "xyz"}).status_code in (400, 422)

    count = len(stack.items("/v1/runs"))
    async with editor(folder, tmp_path / "other home", settings(stack.url, trusted=False)) as again:
        again.open("jobs/train.py")
        await again.status("idle: train.py, as it was last run")
        assert again.list_diagnostics(where) == shown
    assert len(stack.items("/v1/runs")) == count


async def test_a_newer_save_cancels_the_run_of_the_older(stack: Served, tmp_path: Path):
    folder = tmp_path / "w"
    (folder / "jobs").mkdir(parents=True)
    async with editor(folder, tmp_path / "home", settings(stack.url)) as session:
        session.open("jobs/train.py", ENDLESS)
        session.save("jobs/train.py")
        digest = snippet_digest("jobs/train.py", {"jobs/train.py": ENDLESS.encode()}).hex()
        find = lambda: stack.items("/v1/runs", snippet_sha256=digest)  # noqa: E731
        (older,) = await session.wait_until(find, "it was submitted")
        session.save("jobs/train.py", "x = 1\n")
        await session.status("idle: train.py: succeeded")
        assert stack.wait_for_end(older["id"])["status"] == "canceled"
        assert session.messages == []
