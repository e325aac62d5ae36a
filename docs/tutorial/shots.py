"""The tutorial's pictures, from real pages: `python -m docs.tutorial.shots http://127.0.0.1:8000`, beside `make run`.

It submits the programs of this folder, waits for their ends, and takes one picture of each task.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = ("wrong", "right", "leak", "nan")
PAGES = {
    "last-hour": "/runs?level=error&since=1h",
    "new-this-week": "/findings?state=new",
    "keys": "/admin/keys",
}
PATIENCE_SECONDS = 120
FLAGS = ["--no-sandbox", "--disable-gpu", "--in-process-gpu", "--disable-features=SpareRendererForSitePerProcess"]


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    """One answer of the API."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310 - the reader's own service
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - likewise
        return json.load(answer)


def submitted(url: str) -> dict[str, str]:
    """The runs of the programs by name, all of them ended. All are `train.py`, as one who edits it would have it."""
    runs = {}
    for name in PROGRAMS:
        source = (HERE / "programs" / f"{name}.py").read_text("utf-8")
        runs[name] = ask(f"{url}/v1/runs", {"source": source, "entry": "train.py", "labels": {"tutorial": name}})["id"]
    wait_for_ends(url, runs)
    return runs


def wait_for_ends(url: str, runs: dict[str, str]) -> None:
    """Wait for the ends of runs."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for run in runs.values():
        while not ask(f"{url}/v1/runs/{run}")["ended"]:
            if time.monotonic() > deadline:
                raise SystemExit(f"run {run} has not ended within {PATIENCE_SECONDS} s")
            time.sleep(0.5)


def take(url: str, runs: dict[str, str]) -> None:
    """The pictures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        tab = browser.new_page(viewport={"width": 1180, "height": 720}, color_scheme="light")
        tab.goto(f"{url}/runs/{runs['wrong']}")
        tab.wait_for_selector("#graph [data-box]")
        tab.keyboard.press("j")
        tab.wait_for_selector(".findings > .chosen")
        tab.screenshot(path=HERE / "grad-none.png")
        tab.goto(f"{url}/runs/{runs['leak']}#held")
        tab.wait_for_selector("#held svg")
        tab.locator("#held").screenshot(path=HERE / "leak.png")
        tab.goto(f"{url}/runs/{runs['nan']}")
        tab.wait_for_selector("#gradients canvas")
        tab.locator("#findings").screenshot(path=HERE / "first-nan.png")
        tab.locator("#gradients").screenshot(path=HERE / "nan.png")
        tab.set_viewport_size({"width": 1180, "height": 620})
        tab.goto(f"{url}/compare?a={runs['wrong']}&b={runs['right']}")
        tab.screenshot(path=HERE / "changed.png")
        for name, path in PAGES.items():
            tab.goto(f"{url}{path}")
            tab.wait_for_load_state("networkidle")
            tab.screenshot(path=HERE / f"{name}.png")
        tab.goto(f"{url}/runs/{runs['nan']}?name=*h.0.mlp*&stat=grad_norm#curves")
        tab.wait_for_selector("#curves canvas")
        tab.locator("#curves").screenshot(path=HERE / "curves.png")
        run = ask(f"{url}/v1/runs/{runs['wrong']}")
        tab.goto(f"{url}/play/{run['snippet']}?run={run['id']}")
        tab.wait_for_selector(".play-lines li")
        tab.screenshot(path=HERE / "playground.png")
        browser.close()


def main() -> None:
    """Take them, from the service whose address is given."""
    url = sys.argv[1].rstrip("/") if len(sys.argv) > 1 else "http://127.0.0.1:8000"
    take(url, submitted(url))
    for path in sorted(HERE.glob("*.png")):
        print(f"{path.name}: {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
