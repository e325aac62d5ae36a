"""Fifty clients for a minute: a realistic mix on a whole service; how long reads take, and what refusals say.

usage: python -m bench.load [--clients 50] [--seconds 60] [--outrun 20] [--stacks "embedded,PostgreSQL + Redis"]

Each client has its own key and one connection, kept open; between two requests it thinks for 0.1 to 0.5 s, and it
waits where Retry-After asks for that. Of 20 requests 17 are reads, 2 submit, 1 submits and waits. An error is a 5xx, a
refusal without Retry-After, a broken connection, or an answer that took 40 s. The rate limits are the defaults: the
tenant's queue may fill, and then 429 is the right answer.

Then the same clients outrun the workers: without thinking, every second request submits, nothing limits rates, and so
many runs may wait as there are clients. What does not fit must be refused with Retry-After, which they ignore.
"""

import argparse
import http.client
import json
import random
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.service import Service, serving, stores
from bench.tables import table, write

SNIPPET = (Path(__file__).parent / "programs" / "five_lines.py").read_text()
LONGEST_SECONDS = 40.0
"""A request may wait 30 s; an answer beyond that and a little is a hang."""

FIRST_RUNS = 5
RATES = ("READS", "SUBMITS", "TENANT_READS", "TENANT_SUBMITS")
UNLIMITED: Mapping[str, str] = {f"BACKPROBE_RATE_{name}": "0" for name in RATES}
READS = (
    "/v1/runs?limit=20",
    "/v1/runs/{run}",
    "/v1/runs/{run}/findings",
    "/v1/runs/{run}/tensors?limit=100",
    "/v1/runs/{run}/graph",
    "/v1/runs/{run}/source",
    "/v1/runs/{run}/events",
    "/v1/findings?limit=20",
    "/v1/queue",
)


@dataclass
class LoadResults:
    """What all clients saw."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    runs: list[str] = field(default_factory=list)

    def add(self, kind: str, status: int, seconds: float) -> None:
        """One answer."""
        with self.lock:
            self.seconds[kind].append(seconds)
            self.statuses[kind, status] += 1

    def error(self, what: str) -> None:
        """Something that must not be."""
        with self.lock:
            self.errors[what] += 1


@dataclass
class Client:
    """One client: its key, its connection, its own random numbers."""

    port: int
    key: str
    seen: LoadResults
    number: int
    outruns: bool = False

    def live(self, until: float) -> None:
        """Ask, think, ask again."""
        chance = random.Random(self.number)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST_SECONDS)
        while time.monotonic() < until:
            pause = self._request(connection, chance)
            if self.outruns:
                continue
            time.sleep(min(pause + chance.uniform(0.1, 0.5), max(0.0, until - time.monotonic())))
        connection.close()

    def _request(self, connection: http.client.HTTPConnection, chance: random.Random) -> float:
        """One request; the seconds that the answer asks to wait for."""
        kind = chance.choices(("read", "submit", "submit and wait"), (1, 1, 0) if self.outruns else (17, 2, 1))[0]
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        if kind == "read":
            asked = ("GET", chance.choice(READS).format(run=chance.choice(self.seen.runs)), None)
        else:
            asked = ("POST", "/v1/runs", json.dumps({"source": SNIPPET, "labels": {"client": str(self.number)}}))
            headers |= {"Prefer": "wait=10"} if kind != "submit" else {}
        started = time.perf_counter()
        try:
            connection.request(*asked, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self.seen.error(f"{kind}: {type(error).__name__}")
            return 0.0
        self.seen.add(kind, answer.status, time.perf_counter() - started)
        after = answer.headers.get("Retry-After")
        if answer.status >= 400 and (answer.status not in {429, 503} or after is None):
            self.seen.error(f"{kind} {asked[1].partition('?')[0]}: {answer.status} {text[:120]!r}")
        return float(after) if after and answer.status >= 400 else 0.0


def keys(service: Service, count: int) -> list[str]:
    """As many keys."""
    asked = {"name": "load", "scopes": ["read", "runs:write"]}
    return [service.ask("POST", "/v1/keys", asked)[1]["secret"] for _ in range(count)]


def measure(stack: str, clients: int, seconds: float, *, outruns: bool = False) -> tuple[LoadResults, dict[str, int]]:
    """What the clients saw, and what the queue was at the end."""
    seen = LoadResults()
    more = {**UNLIMITED, "BACKPROBE_MOST_QUEUED": str(clients)} if outruns else {}
    with stores(stack) as environment, serving({**environment, **more}) as service:
        seen.runs = [service.run(SNIPPET)["id"] for _ in range(FIRST_RUNS)]
        made = keys(service, clients)
        until = time.monotonic() + seconds
        threads = [
            threading.Thread(target=Client(service.port, key, seen, number, outruns).live, args=(until,))
            for number, key in enumerate(made)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        service.connection.close()  # idle for too long
        queues = service.ask("GET", "/v1/queue")[1]["queues"]
    return seen, {name: sum(int(queue[name]) for queue in queues) for name in ("queued", "running")}


def row(stack: str, phase: str, kind: str, seen: LoadResults) -> list[object]:
    """A row of the table."""
    taken = sorted(seen.seconds[kind])
    told = {status: count for (of, status), count in sorted(seen.statuses.items()) if of == kind}
    refused = sum(count for status, count in told.items() if status >= 400)
    ms = [f"{1e3 * value:.0f}" for value in (statistics.median(taken), taken[int(0.99 * len(taken))], taken[-1])]
    return [
        stack,
        phase,
        kind,
        len(taken),
        ", ".join(f"{count} x {status}" for status, count in told.items()),
        refused,
        *ms,
    ]


def main() -> None:
    """Measure the stacks and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--outrun", type=float, default=20, help="seconds in which submits outrun the workers")
    parser.add_argument("--stacks", default="embedded,PostgreSQL + Redis")
    asked = parser.parse_args()
    rows, said = [], []
    for stack in asked.stacks.split(","):
        for phase, seconds in (("mixed", asked.seconds), ("outrun", asked.outrun)):
            seen, queue = measure(stack, asked.clients, seconds, outruns=phase == "outrun")
            rows += [row(stack, phase, kind, seen) for kind in sorted(seen.seconds)]
            errors = ", ".join(f"{count} x {what}" for what, count in seen.errors.items()) or "none"
            left = f"at the end {queue['queued']} runs queued, {queue['running']} running."
            said.append(f"{stack}, {phase}: errors {errors}; {left}")
    head = [
        "stack",
        "phase",
        "request",
        "answers",
        "by status",
        "refused with Retry-After",
        "p50, ms",
        "p99, ms",
        "longest, ms",
    ]
    before = (
        f"{asked.clients} clients, their programs run on the same cores: {asked.seconds:.0f} s of a realistic mix;"
        f" then {asked.outrun:.0f} s in which submits outrun the workers and {asked.clients} runs may wait."
    )
    write("load", "Fifty clients at once", f"{before}\n\n{table(head, rows)}\n\n{'  '.join(said)}")


if __name__ == "__main__":
    main()
