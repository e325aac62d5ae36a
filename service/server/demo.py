"""`serve --demo`: a program whose `.grad` is None through the whole service, over HTTP, its result in the terminal.

A service that has a run already gets no other: who starts it again wants to see their runs, not more of the demo's.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.settings import Settings

SNIPPET: Final = """\
import torch

w = torch.ones(3, requires_grad=True) * 0.1
x = torch.tensor([1.0, 2.0, 3.0])
loss = (w * x).sum()
loss.backward()
print(w.grad)
"""
"""The question that people come with: why is `.grad` None?"""

SHOWCASE: Final = """\
import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(x)


class Tiny(nn.Module):
    def __init__(self, width=16, depth=3, words=20):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Tiny()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
total = 0
for step in range(8):
    ids = torch.randint(0, 20, (2, 9))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss = loss * torch.log(torch.tensor(5.0 - step))
    total += loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
"""A training with two faults, whose page has something in every pane: a NaN from step 5 on, and a graph that grows."""

_PATIENCE_SECONDS: Final = 180
"""The first start of a worker compiles and loads torch from a cold disk."""


def show(url: str, settings: Settings, stop: threading.Event) -> None:
    """Submit the snippet, print its tensors, backward calls and findings, and where its page is."""
    begun = time.monotonic()
    ask = partial(_send_request, url, settings.api_key)
    if ask("GET", "/v1/runs?limit=1")["items"]:
        _print(f"There are runs already, so the demo adds none: {url}/runs")
        return
    run = _await_run_end(ask, _submit_program(ask, SNIPPET, "grad-is-none"), begun, stop)
    if stop.is_set():
        return
    page = url + run["links"]["page"]
    if not run["ended"]:
        _print(f"The worker has not finished the first program yet; see {settings.store.home / 'logs'} and {page}")
        return
    _print(f"\n{_report(settings, run['id'])}\n")
    _print(f"The run, {run['status']} {time.monotonic() - begun:.1f} s after it was sent: {page}")
    with contextlib.suppress(OSError, http.client.HTTPException):  # whoever ends the service now has seen the first
        _showcase(ask, url, stop)


def _showcase(ask: Callable[..., dict[str, Any]], url: str, stop: threading.Event) -> None:
    run = _await_run_end(ask, _submit_program(ask, SHOWCASE, "showcase"), time.monotonic(), stop)
    if run["ended"] and not stop.is_set():
        counts = run["findings"]
        _print(f"A training with {counts['error'] + counts['warning']} faults to look at: {url}{run['links']['page']}")


def _await_run_end(
    ask: Callable[..., dict[str, Any]], run: dict[str, Any], begun: float, stop: threading.Event
) -> dict[str, Any]:
    """Wait for the end of a run; return it as it is then, or when patience or the service ends."""
    while not run["ended"] and time.monotonic() < begun + _PATIENCE_SECONDS and not stop.is_set():
        run = ask("GET", run["links"]["self"], headers={"Prefer": "wait=5"})
    return run


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _submit_program(ask: Callable[..., dict[str, Any]], source: str, name: str) -> dict[str, Any]:
    body = json.dumps({"source": source, "entry": f"{name}.py", "labels": {"demo": name}}).encode()
    return ask("POST", "/v1/runs", body, {"Content-Type": "application/json", "Prefer": "wait=5"})


def _send_request(
    url: str,
    key: str | None,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    sent = {**(headers or {}), **({"Authorization": f"Bearer {key}"} if key else {})}
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status >= 400:
        raise RuntimeError(f"the service refused its own example: {told['detail']}")
    return told


def _report(settings: Settings, public_id: str) -> str:
    from backprobe.rules import judge
    from backprobe.show.formats import terminal_report as text
    from store.database.session import Database
    from store.records import storage
    from store.runs import lifecycle

    database = Database(settings.store.database_url)
    try:
        with database.read() as transaction:
            run = lifecycle.get(transaction, public_id)
            record = storage.load(transaction, run.key) if run is not None and run.key is not None else None
    finally:
        database.close()
    if record is None:
        return "There is no record of it; its page tells why."
    return text.render(record, judge(record), color=sys.stdout.isatty(), width=120, tables=True)
