"""A run's page while the run goes on: what comes is shown without a reload, after a broken connection too."""

from __future__ import annotations

import pytest

from store.records import live_record
from store.records.live_record import LiveRecord
from store.runs import completion, lifecycle
from tests.support import samples
from tests.support.resources import require
from tests.support.waiting import wait_until

PATIENCE = 60_000
HOSTILE = "\u202e<img src=x onerror=alert(1)>\n"


@pytest.fixture(scope="module", autouse=True)
def assets():
    require("assets")


class Job:
    """A run in the hands of a worker, which the test is; on the queue gpu nobody else waits."""

    def __init__(self, site):
        self.database = site.context.database
        worker = site.worker(queues=("gpu",))
        self.run = site.submit(device="cuda")
        claim = lifecycle.claim(self.database, worker, queue="gpu", devices=("cuda:test",))
        assert claim is not None
        assert claim.public_id == self.run
        self.claim = claim
        self.writer = LiveRecord(self.database, claim)

    def go_on(self, steps, printed):
        """Write what a worker writes every few seconds."""
        record = samples.trained(steps)
        if steps == 1:
            self.writer.take("header", (record.header,))
            self.writer.take("sources", record.sources)
            self.writer.take("sites", record.sites)
            self.writer.take("tensors", record.tensors)
        self.writer.take("steps", record.steps)
        self.writer.take(
            "output", [{"stdout": {"tail": printed, "total_bytes": 9}, "stderr": {"tail": "", "total_bytes": 0}}]
        )
        self.writer.flush()

    def end(self):
        """End it as a worker does."""
        ending = completion.Ending(status="succeeded", exit_code=0)
        assert completion.finish(self.database, self.claim, ending, samples.trained(5), None, live=True)


@pytest.fixture
def job(served, monkeypatch):
    monkeypatch.setattr(live_record, "PROGRESS_SECONDS", 0.0)
    return Job(served.site)


ONE_THEME = pytest.mark.parametrize("walk", ["light"], indirect=True)


@ONE_THEME
def test_steps_output_and_curves_come_as_they_are_made(walk, served, job):
    tab = walk.tab
    job.go_on(1, "begun\n")
    tab.goto(f"{served.url}/runs/{job.run}")
    tab.locator("[data-live-link]", has_text="connected").wait_for(timeout=PATIENCE)
    assert tab.inner_text("[data-live-output]") == "begun\n"
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    job.go_on(4, f"begun\n{HOSTILE}")
    tab.locator("[data-live-steps]", has_text="4").wait_for(timeout=PATIENCE)
    tab.locator("[data-live-output]", has_text="\\u202e<img src=x onerror=alert(1)>").wait_for(timeout=PATIENCE)
    said = tab.locator("#curves figure [role=status]").first
    tab.locator("#curves [role=group]").first.focus()
    wait_until(lambda: tab.keyboard.press("End") or said.inner_text() == "Step 3: this run 0.25", "the new step")
    assert tab.locator("[data-live-status]").inner_text() == "running"
    assert not [url for url in asked if "/events" in url]
    job.end()
    tab.locator("[data-live-news]", has_text="The run has ended: succeeded.").wait_for(timeout=PATIENCE)
    assert tab.locator("[data-live-link]").inner_text() == "the run has ended"
    tab.click("text=Show it")
    tab.locator("#live").wait_for(state="detached", timeout=PATIENCE)


@ONE_THEME
def test_a_refused_connection_is_made_again_and_misses_nothing(walk, served, job):
    tab = walk.tab
    job.go_on(1, "begun\n")
    tab.route("**/events?after=*", lambda route: route.fulfill(status=503), times=1)
    tab.goto(f"{served.url}/runs/{job.run}")
    tab.locator("[data-live-link]", has_text="trying again").wait_for(timeout=PATIENCE)
    job.go_on(3, "again\n")
    tab.locator("[data-live-link]", has_text="connected").wait_for(timeout=PATIENCE)
    tab.locator("[data-live-steps]", has_text="3").wait_for(timeout=PATIENCE)
    job.end()
    tab.locator("[data-live-news]", has_text="The run has ended").wait_for(timeout=PATIENCE)
    (refused,) = walk.faults
    assert "503" in refused
    walk.faults.clear()
