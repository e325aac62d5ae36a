"""`backprobe.watch(url=...)` around a training loop: what arrives, and that the loop does not notice."""

from __future__ import annotations

import os
import signal
import sys

import pytest
import torch
from torch import nn

import backprobe
from backprobe.record import check
from backprobe.recorder.spool import list_spooled_runs
from backprobe.recorder.target import spool_home
from tests.support.processes import Processes, inherited

JOB = """
import sys, time
import torch, backprobe
from backprobe.recorder import pace
pace.LEAST_SECONDS = 0.05
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with backprobe.watch(model, optimizer, every=1):
    while True:
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        time.sleep(0.005)
"""


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("BACKPROBE_HOME", str(tmp_path))


def train(steps, **watched):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu")
    losses = []
    with backprobe.watch(model, optimizer, report=False, **watched) as watching:
        for _ in range(steps):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.randn(4, 3)).pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    return losses, [parameter.detach().clone() for parameter in model.parameters()], watching


@pytest.mark.parametrize("case", ["answers", "never answers", "is away", "refuses"])
def test_numbers_are_the_same_to_the_bit_whatever_the_service_does(service, case, capsys):
    losses, parameters, _ = train(40, url="")
    if case == "never answers":
        service.free.clear()
    elif case == "is away":
        service.stop()
    elif case == "refuses":
        service.refusal = lambda _: (401, {"code": "unauthorized"}, {})
    again, others, watching = train(40, url=service.url)
    assert again == losses
    assert all(torch.equal(a, b) for a, b in zip(parameters, others, strict=True))
    health = watching.health()
    said = capsys.readouterr().err
    where = f"frames sent to {service.url}/runs/{health.run}\n"
    assert where in said if case == "answers" else f"nothing of {health.run} was sent to {service.url}; " in said
    service.free.set()
    if case == "is away":
        service.start()
    if case == "answers":
        assert service.ends
        record = service.record(health.run)
        check(record)
        assert record.tensors == watching.record.tensors
        assert record.end is not None and record.end.own_errors == 0
        assert len(service.requests) <= 60
    else:
        (left,) = list_spooled_runs(spool_home())
        assert left.run == health.run and left.end is not None


@pytest.mark.usefixtures("fresh_python")
def test_a_killed_job_leaves_what_it_had_sent(service, tmp_path, wait_until):
    processes = Processes(tmp_path)
    script = tmp_path / "job.py"
    script.write_text(JOB)
    environment = inherited() | {"BACKPROBE_URL": service.url, "BACKPROBE_JOB": "gpt", "BACKPROBE_HOME": str(tmp_path)}
    try:
        job = processes.start([sys.executable, str(script)], environment, name="job")
        wait_until(lambda: service.frames and service.record(next(iter(service.frames))).steps, "steps of the job")
        job.send_signal(signal.SIGKILL)
        job.wait(60)
    finally:
        processes.kill()
    (run,) = service.frames
    record = service.record(run)
    check(record)
    assert record.steps
    assert record.end is None
    assert run not in service.ends
    assert service.runs[run]["labels"] == {"group": "gpt"}
    assert service.runs[run]["environment"]["script"] == "job.py"


def test_another_rank_is_let_be_unless_all_are_asked_for(service, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    _, _, watching = train(2, url=service.url)
    assert watching.record.steps == ()
    assert (watching.health(), service.requests) == (None, [])
    train(2, url=service.url, ranks="all")
    (run,) = service.runs.values()
    assert run["labels"] == {"rank": "1", "world_size": "2"}


def test_the_source_goes_along_as_lines(service):
    train(3, url=service.url)
    (run,) = service.frames
    (source,) = service.record(run).sources
    assert source.path.endswith("test_watched_job.py")
    assert "scaler.scale(loss).backward()" in source.text
    assert "train(3, url=service.url)" in source.text, "the call that led there goes along"
    assert "job." + "send_signal" not in source.text


def test_a_job_that_raises_says_so(service):
    model = nn.Linear(1, 1)

    def fails():
        with backprobe.watch(model, url=service.url):
            model(torch.ones(1, 1)).backward()
            raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        fails()
    (run,) = service.frames
    record = service.record(run)
    assert (record.end.ending, record.raised[-1].type) == ("raised", "KeyError")


def test_an_argument_that_cannot_be_is_refused_before_anything_is_watched():
    for given in ({"url": "ftp://x"}, {"source": "some"}, {"ranks": "last"}):
        with pytest.raises(ValueError, match=r"it is|no address"):
            backprobe.watch(nn.Linear(1, 1), **given)
    assert "BACKPROBE_URL" not in os.environ
