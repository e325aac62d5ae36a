"""A real server and a real Chromium; the runs are stored values, so torch is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import samples
from tests.support.site import make_site

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--in-process-gpu",
    "--disable-features=SpareRendererForSitePerProcess",
]  # fmt: skip
"""Without the last two a second process draws nothing, and each page starts one more that nobody asks for."""


class RunPages:
    """A server with runs in every state, their addresses by name; `site`: what it serves."""

    def __init__(self, url: str, runs: dict[str, str], site: Any) -> None:
        self.url, self.runs, self.site = url, runs, site

    def page(self, name: str) -> str:
        """The address of a page: below a run by its name, else by its path, in which `{good}` is the id of a run.

        `{audit}` is that of an audit of all of them.
        """
        run, slash, below = name.partition("/")
        if run in self.runs:
            return f"{self.url}/runs/{self.runs[run]}{slash}{below}"
        return f"{self.url}/{name.format_map(self.runs)}"


def _runs(site: Any) -> dict[str, str]:
    """One run of each kind; the queued one last, so that no claim takes it."""
    from backprobe.rules import judge
    from store.runs.completion import Stream
    from store.runs.model import RunError

    error = RunError(whose="program", code="raised", type="RuntimeError", message="it broke\nin two lines", line=7)
    limit = RunError(whose="limit", code="wall-seconds", message="The program ran for 60 s.")
    lost = RunError(whose="ours", code="worker-lost", message="The worker was gone.")
    hostile = samples.tutorial(samples.Words(name=samples.HOSTILE, message=samples.HOSTILE, warning=samples.HOSTILE))
    long = samples.tutorial(samples.Words(name="a_name_that_goes_on_" * 9 + "{}"))
    out = Stream(tail=samples.HOSTILE + "<script>alert(1)</script>\x07", total_bytes=5000)
    bad = {"status": "failed", "exit_code": 1}
    return {
        "good": site.finished(),
        "failed": site.finished(error=error, **bad),
        "exceeded": site.finished(status="exceeded", exit_code=None, signal=9, limit="wall_seconds", error=limit),
        "lost": site.finished(status="lost", exit_code=None, error=lost),
        "nan": site.finished(samples.tutorial(nan=True)),
        "hostile": site.finished(hostile, error=RunError(whose="program", code="raised", message=samples.HOSTILE, type=samples.HOSTILE), stdout=out, stderr=out, body={"labels": {"a": "<b>x</b>"}}, **bad),
        "long": site.finished(long),
        "deep": site.finished(samples.deep(1060), judgement=judge(samples.tutorial())),
        "unrecorded": site.finished(samples.deep(300, recorded=100), judgement=judge(samples.tutorial())),
        "trained": site.finished(samples.trained(40)),
        "diverged": site.finished(samples.trained(30, nan_at=12)),
        "queued": site.submit(),
    }  # fmt: skip


def _audit(site: Any, runs: dict[str, str]) -> str:
    """An audit of these runs, one more that was refused and one of a stranger's name; compared with one before."""
    from store.audits.judging import settle
    from store.tables import audit_item

    items = [{"custom_id": f"{name}.py", "run": run} for name, run in runs.items()]
    items.append({"custom_id": "refused.py", "run": "run_01JD8PZ4T8W2K5C7Q9R3M6X1BA"})
    for some in (items[:2], items):
        audit = site.client.post("/v1/audits", json={"name": "nightly <b>", "items": some}).json["id"]
        settle(site.context.database)
    with site.context.database.begin() as transaction:
        named = audit_item.update().where(audit_item.c.custom_id == "hostile.py")
        transaction.execute(named.values(custom_id=samples.HOSTILE))
    return str(audit)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunPages]:
    """The server."""
    from service.process.address import listen
    from service.server.http_server import Server

    site = make_site(tmp_path_factory.mktemp("home"), None)
    runs = _runs(site)
    runs["audit"] = _audit(site, {name: run for name, run in runs.items() if name != "queued"})
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=4)
    server.start()
    yield RunPages(f"http://127.0.0.1:{listening.getsockname()[1]}", runs, site)
    server.stop()
    site.context.close()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """Start Chromium without a network."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        started.close()


class Walk:
    """One tab, and everything that must not happen in it."""

    def __init__(self, tab: Any, url: str) -> None:
        self.tab = tab
        self.faults: list[str] = []
        tab.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        tab.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        tab.on("requestfailed", self._failed)
        tab.on("request", lambda request: self._look(request.url, url))

    def _failed(self, request: Any) -> None:
        """A page that is left while it asks for something ends that itself: no fault."""
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"failed: {request.url} {request.failure}")

    def _look(self, asked: str, url: str) -> None:
        if not asked.startswith((url, "data:")):
            self.faults.append(f"off-origin: {asked}")


@pytest.fixture(params=["light", "dark"])
def walk(request: pytest.FixtureRequest, browser: Any, served: RunPages) -> Iterator[Walk]:
    """A tab in either theme; nothing may have gone wrong in it."""
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1280, "height": 900})
    found = Walk(context.new_page(), served.url)
    yield found
    context.close()
    assert found.faults == []
