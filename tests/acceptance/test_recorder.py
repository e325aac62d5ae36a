"""A training job that reports to a whole running service: its findings while it goes on, its page, its end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

import backprobe
from backprobe.recorder import finding_poll, pace

pytestmark = pytest.mark.usefixtures("full_tier")

if TYPE_CHECKING:
    from tests.support.served import Served


def test_a_job_hears_of_its_nan_and_stops_and_its_run_tells_it(
    stack: Served, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKPROBE_HOME", str(tmp_path))
    monkeypatch.setattr(pace, "LEAST_SECONDS", 0.2)
    monkeypatch.setattr(pace, "MOST_SECONDS", 0.5)
    monkeypatch.setattr(finding_poll, "MOST_SECONDS", 1.0)
    told, stop = [], threading.Event()

    def on_finding(finding: dict[str, Any]) -> None:
        told.append(finding["id"])
        if finding["rule"]["name"] == "nonfinite-forward":
            stop.set()

    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = 0
    with backprobe.watch(
        model, optimizer, url=stack.url, source="full", labels={"job": "nan"}, on_finding=on_finding, report=False
    ) as watching:
        while not stop.wait(0.05) and steps < 2400:
            optimizer.zero_grad()
            loss = model(torch.ones(2, 3)).sum()
            if steps >= 5:
                loss = loss * torch.sqrt(loss * 0 - 1.0)
            loss.backward()
            optimizer.step()
            steps += 1
    health = watching.health()
    assert health is not None
    assert stop.is_set(), (health, told)
    assert (health.state, health.dropped) == ("closed", 0), health
    run = stack.wait_for_end(health.run)
    assert (run["status"], run["labels"]) == ("succeeded", {"job": "nan"})
    here = {finding.fingerprint for finding in watching.findings}
    path = f"/v1/runs/{health.run}/findings"
    stack.wait_until(lambda: {row["fingerprint"] for row in stack.items(path)} == here, f"the end is judged: {here}")
    assert "loss.backward()" in [line["text"].strip() for line in stack.get(f"/v1/runs/{health.run}/source")["lines"]]
    assert [row["kind"] for row in stack.items(f"/v1/runs/{health.run}/events")].count("judged") >= 1
    assert stack.record(health.run).end == watching.record.end
