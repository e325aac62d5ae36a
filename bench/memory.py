"""Memory that each run in flight adds to a warm service.

usage: python -m bench.memory [--runs 4] [--rounds 3]

The five-line snippet is held open by a sleep at its end. PSS (each shared page counted by its share) is summed over all
processes of the service, idle and with N runs in flight; the difference over N is what one run costs. RSS of a child is
given too: it counts the zygote's pages again, which cost nothing.
"""

import argparse
import time
from pathlib import Path

import psutil

from bench.service import Service, serving, stores
from bench.tables import spread, table, write

SNIPPET = (Path(__file__).parent / "programs" / "five_lines.py").read_text()
HELD = SNIPPET + "\nimport time\n\ntime.sleep(25)\n"
MIB = 1 << 20


def processes(service: Service) -> list[psutil.Process]:
    """The service and all its descendants."""
    root = psutil.Process(service.process.pid)
    return [root, *root.children(recursive=True)]


def pss_bytes(service: Service) -> int:
    """PSS of the whole service."""
    total = 0
    for process in processes(service):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue  # it ended between the listing and the reading
    return total


def submit_held(service: Service, runs: int) -> list[str]:
    """Submit the held snippets and wait until each has done its work and sleeps."""
    ids = [service.ask("POST", "/v1/runs", {"source": HELD})[1]["id"] for _ in range(runs)]
    deadline = time.monotonic() + 20
    while any(service.ask("GET", f"/v1/runs/{run}")[1]["status"] == "queued" for run in ids):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all of {runs} runs started: has the worker that many slots?")
        time.sleep(0.05)
    time.sleep(3)
    return ids


def measure(service: Service, runs: int) -> tuple[float, list[float], list[float]]:
    """MiB of PSS added per run; RSS and unique memory of each child, in MiB."""
    before_processes = {process.pid for process in processes(service)}
    before = pss_bytes(service)
    ids = submit_held(service, runs)
    added = (pss_bytes(service) - before) / runs / MIB
    children = [p.memory_full_info() for p in processes(service) if p.pid not in before_processes]
    for run in ids:
        service.ask("POST", f"/v1/runs/{run}/cancel")
    deadline = time.monotonic() + 30
    while any(not service.ask("GET", f"/v1/runs/{run}")[1]["ended"] for run in ids):
        if time.monotonic() > deadline:
            raise RuntimeError("canceled runs do not end")
        time.sleep(0.1)
    return added, [c.rss / MIB for c in children], [c.uss / MIB for c in children]


def main() -> None:
    """Measure both stacks and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2, help="runs in flight; the worker needs that many slots")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rows = []
    for stack in ("embedded", "PostgreSQL + Redis"):
        with stores(stack) as environment, serving(environment) as service:
            for _ in range(5):
                service.run(SNIPPET)
            measured = [measure(service, asked.runs) for _ in range(asked.rounds)]
            idle = pss_bytes(service) / MIB
        added = [pss for pss, _, _ in measured]
        rss = [value for _, values, _ in measured for value in values]
        unique = [value for _, _, values in measured for value in values]
        rows.append([stack, asked.runs, f"{idle:.0f}", f"**{spread(added)}**", spread(unique), spread(rss, "{:.0f}")])
    head = ["stack", "runs in flight", "idle service, PSS", "added per run, PSS", "child, unique", "child, RSS"]
    body = f"MiB; median (least to most) over {asked.rounds} rounds.\n\n{table(head, rows)}"
    write("memory", "Memory added per run in flight", body)


if __name__ == "__main__":
    main()
