"""How long one tenant's runs take while another fills all it can of the workers: slots, memory, private folders.

usage: python -m bench.fair_runs [--rounds 3] [--asks 5] [--stacks "embedded,PostgreSQL + Redis"]

From the submit to the result of a program with one backward call, by turns in quiet time and beside the other's runs,
which hold what they have and sleep. `fairness.py` measures requests in the same way, without a worker.
"""

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Iterator, Mapping

from bench.caller import Caller
from bench.fairness import keys
from bench.service import serving, stores
from bench.tables import middle, table, write

TARGET = 3.0
"""Times as long as in quiet time, at most."""

RUNS = 16
"""The other's, more than it is given slots for."""

SETTLED_SECONDS = 3.0
"""Until the workers have taken what they will, and the reaper has sent every wake-up that is due."""

GOOD = "import torch\nw = torch.ones(3, requires_grad=True)\n(w * w).sum().backward()\nprint(w.grad)\n"
SLEEPS = "import time\ntime.sleep(600)\n"
HOLDS = "import time\nheld = bytearray(256 << 20)\ntime.sleep(600)\n"
FILLS = """
import os, time
fd = os.open('/tmp/filled', os.O_CREAT | os.O_WRONLY)
try:
    while True: os.write(fd, bytes(1 << 20))
except OSError: time.sleep(600)
"""
THINGS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "slots": (SLEEPS, {}),
    "memory": (HOLDS, {"memory_bytes": 4 << 30}),
    "private folders": (FILLS, {"disk_bytes": 256 << 20}),
}


def milliseconds(caller: Caller) -> float:
    """Milliseconds from a submit to its result.

    Raises:
        RuntimeError: the run did not succeed.
    """
    began = time.perf_counter()
    body = json.dumps({"source": GOOD}).encode()
    run = json.loads(caller.ask("POST", "/v1/runs", body, Prefer="wait=30"))
    while run["status"] in ("queued", "running"):
        run = json.loads(caller.ask("GET", f"/v1/runs/{run['id']}", Prefer="wait=30"))
    if run["status"] != "succeeded":
        raise RuntimeError(f"a run ended {run['status']}: {run['error']}")
    return 1000 * (time.perf_counter() - began)


@contextlib.contextmanager
def filled(caller: Caller, source: str, limits: Mapping[str, int]) -> Iterator[None]:
    """Let a tenant run as many of these programs as it is given room for."""
    body = json.dumps({"source": source, "limits": {"wall_seconds": 600, **limits}}).encode()
    runs = [json.loads(caller.ask("POST", "/v1/runs", body))["id"] for _ in range(RUNS)]
    time.sleep(SETTLED_SECONDS)
    yield
    for run in reversed(runs):  # those that wait first: else one that ends makes room for the next
        caller.ask("POST", f"/v1/runs/{run}/cancel")
    for run in runs:
        while json.loads(caller.ask("GET", f"/v1/runs/{run}"))["status"] in ("queued", "running"):
            time.sleep(0.1)


def compared(greedy: Caller, other: Caller, rounds: int, asks: int) -> Iterator[list[str]]:
    """Rows of the table: each thing that is filled."""
    milliseconds(other)  # the first waits for the worker
    for thing, (source, limits) in THINGS.items():
        quiet: list[float] = []
        beside: list[float] = []
        for _ in range(rounds):
            quiet += [milliseconds(other) for _ in range(asks)]
            with filled(greedy, source, limits):
                beside += [milliseconds(other) for _ in range(asks)]
        ratio = middle(beside) / middle(quiet)
        said = "" if ratio <= TARGET else f"above {TARGET:.0f}"
        yield [thing, f"{middle(quiet):.0f}", f"{middle(beside):.0f}", f"{max(beside):.0f}", f"{ratio:.1f}", said]


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--asks", type=int, default=5)
    parser.add_argument("--stacks", default="embedded,PostgreSQL + Redis")
    arguments = parser.parse_args()
    rates = {f"BACKPROBE_RATE_{name}": "0" for name in ("READS", "SUBMITS", "TENANT_READS", "TENANT_SUBMITS")}
    rows: list[list[str]] = []
    for stack in arguments.stacks.split(","):
        with stores(stack) as where, tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home:
            environment = {**where, **rates, "BACKPROBE_HOME": home, "BACKPROBE_API_KEY": "bench"}
            with serving(environment) as service:
                greedy, other = (Caller(service.port, keys(environment, name, 1)[0]) for name in ("greedy", "other"))
                rows += [[stack, *row] for row in compared(greedy, other, arguments.rounds, arguments.asks)]
    head = ("stack", "filled by another", "quiet p50, ms", "beside p50, ms", "beside longest, ms", "ratio", "")
    write("fair_runs", "One tenant's runs while another fills all it can of the workers", table(head, rows))


if __name__ == "__main__":
    main()
