"""Every page's picture, light and dark, at three widths: `python -m tests.browser.shots ADDRESS FOLDER`, for a person to look at.

ADDRESS is that of `make run`. The programs of docs/tutorial and those below are submitted; what the service has already
of runs and audits stands on the lists beside them.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any, Final

from bench.pages import programs
from docs.tutorial.shots import FLAGS, ask, submitted, wait_for_ends

WIDTHS: Final = (390, 1280, 1920)
THEMES: Final = ("light", "dark")
HEIGHT: Final = 900
TALLEST: Final = 4_000
"""Pixels of a page that are looked at."""

QUIET_MS: Final = 15_000

PROGRAMS: Final = {
    "empty": "print(1)\n",
    "failed": "import torch\n\nw = torch.ones(3)\nw.sum().backward()\n",
    "hostile": (
        "import torch\n\nd = {'<img src=x onerror=alert(1)>' * 3: torch.ones(2, requires_grad=True)}\n"
        "w = '\u202e</script><b>' + 'long_name_without_a_break' * 20\nd[w] = torch.ones(2, requires_grad=True)\n"
        "(d[w] * 2).sum().backward()\nraise ValueError(w)\n"
    ),
}

ADMIN: Final = ("", "keys", "projects", "tenants", "audit-log")

LARGE: Final = {name.replace(" ", "-"): text for name, text in programs().items() if name != "a snippet"}


def pages(url: str) -> dict[str, str]:
    """The paths of all pages by name."""
    runs = submitted(url)
    runs |= {name: ask(f"{url}/v1/runs", {"source": text})["id"] for name, text in (PROGRAMS | LARGE).items()}
    wait_for_ends(url, runs)
    audit = ask(f"{url}/v1/audits", {"items": [{"custom_id": name, "run": run} for name, run in runs.items()]})["id"]
    return {
        "start": "/",
        "runs": "/runs",
        "runs-filtered": "/runs?status=failed",
        **{f"run-{name}": f"/runs/{run}" for name, run in runs.items()},
        "tensor": f"/runs/{runs['wrong']}/tensors/0",
        "live": f"/runs/{ask(f'{url}/v1/runs', {'source': 'import time; time.sleep(90)'})['id']}",
        "compare": f"/compare?a={runs['wrong']}&b={runs['right']}",
        "compare-choose": "/compare",
        "rules": "/rules",
        "rule": "/rules/BP101",
        "audits": "/audits",
        **{f"admin-{name or 'overview'}": f"/admin/{name}".rstrip("/") for name in ADMIN},
        "audit": f"/audits/{audit}",
        "audit-cell": f"/audits/{audit}?level=warning",
        "projects": "/projects",
        "project": "/projects/default",
        "findings": "/findings",
        "finding-group": f"/findings/{ask(f'{url}/v1/finding-groups')['items'][0]['id']}",
        "reference": "/docs/api",
        "problem": "/problems/not-found",
        "missing": "/runs/run_none",
    }


def take(url: str, paths: dict[str, str], folder: Path) -> list[str]:
    """Take them; what was wrong with any of them in a way that a script can tell."""
    from playwright.sync_api import sync_playwright

    faults: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for theme in THEMES:
            for width in WIDTHS:
                tab = browser.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=theme)
                for name, path in paths.items():
                    faults += [
                        f"{name} {theme} {width}: {fault}"
                        for fault in _take_shot(tab, url + path, folder / f"{name}-{width}-{theme}.png")
                    ]
                tab.close()
        browser.close()
    return faults


def _take_shot(tab: Any, address: str, path: Path) -> list[str]:
    answer = tab.goto(address, wait_until="load")
    if "live" not in path.name:
        tab.wait_for_load_state("networkidle", timeout=QUIET_MS)
    tab.wait_for_timeout(150)
    tall, wide, seen = tab.evaluate(
        "[document.documentElement.scrollHeight, document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    clip = {"x": 0, "y": 0, "width": seen, "height": min(tall, TALLEST)}
    tab.screenshot(path=path, full_page=True, clip=clip)
    faults = [f"answered {answer.status}"] if answer.status >= 400 and "missing" not in path.name else []
    return [*faults, *([f"{wide} px wide in {seen}"] if wide > seen else [])]


def main() -> None:
    """Take them all, and say what a script sees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    told = parser.parse_args()
    told.folder.mkdir(parents=True, exist_ok=True)
    url = told.url.rstrip("/")
    found = take(url, pages(url), told.folder)
    print("\n".join(found) or f"{len(list(told.folder.glob('*.png')))} pictures")


if __name__ == "__main__":
    main()
