"""What the page of a run costs: its shell on the server, and its first paint, scripts and longest task in Chromium.

usage: python -m bench.pages [ADDRESS] [--times 20]     beside `make run`; ADDRESS is http://127.0.0.1:8000 if not given

Four programs are submitted: a snippet, 10,000 steps of a small network, 500 steps of a transformer, and one step of a
transformer whose graph has 20,000 nodes. Each page is asked for in turn with one that reads nothing
(`/problems/not-found`): the ratio is what stays when the machine is busy. In Chromium a page is opened again each time;
processor time is that of its main thread, as the browser tells it.
"""

import argparse
import gzip
import json
import shutil
import statistics
import time
import urllib.request
from typing import Any

from bench.tables import spread, table, write
from docs.tutorial.shots import FLAGS

PLAIN = "/problems/not-found"
PATIENCE_SECONDS = 600

SNIPPET = "import torch\nx = torch.ones(3, requires_grad=True)\ny = x * 2\ny.sum().backward()\nprint(y.grad)\n"
STEPS = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(10_000):
    x = torch.randn(16, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TRANSFORMER = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (a.view(b, t, 2, w // 2).transpose(1, 2) for a in self.qkv(self.ln1(x)).split(w, dim=2))
        weights = ((q @ k.transpose(-2, -1)) * (w // 2) ** -0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, w))
        return x + self.mlp(self.ln2(x))


class Tiny(nn.Module):
    def __init__(self, depth, width=8, words=50):
        super().__init__()
        self.wte = nn.Embedding(words, width)
        self.h = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        x = self.wte(ids)
        for block in self.h:
            x = block(x)
        return self.head(x)


model = Tiny(depth={depth})
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range({steps}):
    ids = torch.randint(0, 50, (2, 9))
    loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def programs() -> dict[str, str]:
    """The four programs by the row that each has in the table."""

    def transformer(depth: int, steps: int) -> str:
        return TRANSFORMER.replace("{depth}", str(depth)).replace("{steps}", str(steps))

    return {
        "a snippet": SNIPPET,
        "10,000 steps": STEPS,
        "500 steps of a transformer": transformer(4, 500),
        "a graph of 20,000 nodes": transformer(340, 1),
    }


def _send_request(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _await_run_page(url: str, source: str) -> str:
    """The path of the page of a run of this program, at its end."""
    run = _send_request(f"{url}/v1/runs", {"source": source, "limits": {"wall_seconds": 300, "cpu_seconds": 300}})["id"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _send_request(f"{url}/v1/runs/{run}")["ended"]:
        if time.monotonic() > deadline:
            raise SystemExit(f"run {run} has not ended within {PATIENCE_SECONDS} s")
        time.sleep(1)
    return f"/runs/{run}"


def _shell(url: str, path: str) -> tuple[float, int]:
    """Milliseconds to the whole page without scripts, and its bytes in gzip."""
    begun = time.perf_counter()
    with urllib.request.urlopen(url + path, timeout=120) as answer:
        text = answer.read()
    return 1000 * (time.perf_counter() - begun), len(gzip.compress(text))


WATCH = """
window.longest = 0;
new PerformanceObserver((seen) => {
  for (const one of seen.getEntries()) window.longest = Math.max(window.longest, one.duration);
}).observe({type: 'longtask', buffered: true});
"""


def _measure_page(browser: Any, address: str) -> tuple[float, float, float, int]:
    """First paint, the main thread's processor time and the longest task in ms, and the elements of the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.add_init_script(WATCH)
    wire = context.new_cdp_session(tab)
    wire.send("Performance.enable", {"timeDomain": "threadTicks"})
    tab.goto(address)
    tab.wait_for_selector("#graph [data-box], #main")
    tab.wait_for_load_state("networkidle")
    told = {metric["name"]: metric["value"] for metric in wire.send("Performance.getMetrics")["metrics"]}
    paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
    found = (
        paint,
        1000 * told["TaskDuration"],
        tab.evaluate("window.longest"),
        tab.evaluate("document.querySelectorAll('*').length"),
    )
    context.close()
    return found


def main() -> None:
    """Measure, print, and write the table."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8000")
    parser.add_argument("--times", type=int, default=20)
    asked = parser.parse_args()
    url = asked.url.rstrip("/")
    rows: list[list[str]] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, source in programs().items():
            path = _await_run_page(url, source)
            pairs = [(_shell(url, path), _shell(url, PLAIN)[0]) for _ in range(asked.times)]
            shells = sorted(shell for (shell, _), _ in pairs)
            seen = [_measure_page(browser, url + path) for _ in range(max(3, asked.times // 4))]
            paint, cpu, longest = (statistics.median(load[at] for load in seen) for at in range(3))
            rows.append(
                [
                    name, f"{statistics.median(shells):.0f} ({shells[int(0.95 * (len(shells) - 1))]:.0f})",
                    spread([shell / plain for (shell, _), plain in pairs]), f"{pairs[0][0][1] / 1024:.0f}",
                    f"{paint:.0f}", f"{cpu:.0f}", f"{longest:.0f}", str(seen[0][3]),
                ]
            )  # fmt: skip
            print(" | ".join(rows[-1]), flush=True)
        browser.close()
    head = [
        "page of",
        "shell, ms (p95)",
        "beside a plain page",
        "gzip, kB",
        "first paint, ms",
        "main thread, ms",
        "longest task, ms",
        "elements",
    ]
    write("pages", "Pages of runs: what the server and the browser do for them", table(head, rows))


if __name__ == "__main__":
    main()
