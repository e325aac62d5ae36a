"""What one tenant is slowed down by another who takes all that it can get, and what idle streams cost.

usage: python -m bench.fairness [--rounds 3] [--asks 8] [--stacks "embedded,PostgreSQL + Redis"] [--rates default]

One tenant submits, waits for a run that has ended, reads, opens a stream up to its first event, and ends a recorder's
run; by turns in quiet time and while the other takes all it can of one thing. The busy one's clients are another
process on the same cores. No worker runs. Rates are not limited, so that what is left is the sharing itself; with
`--rates default` they are those of an install: rounds times asks of at most 9 are then within a key's own rate.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from backprobe.client import new_run_id
from bench.caller import Caller
from bench.service import Service, serving, stores
from bench.tables import middle, table, write

UNLIMITED: Mapping[str, str] = {
    f"BACKPROBE_RATE_{name}": "0" for name in ("READS", "SUBMITS", "TENANT_READS", "TENANT_SUBMITS")
}
TARGET = 2.0
"""Times as slow as in quiet time, at most."""

IDLE = 500
IDLE_SECONDS = 5.0


class Asked:
    """What a tenant lives by."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.run = caller.submit()
        caller.ask("POST", f"/v1/runs/{self.run}/cancel")

    def kinds(self) -> dict[str, Callable[[], object]]:
        """Each by its name."""
        return {
            "submit": self.caller.submit,
            "wait": lambda: self.caller.ask("GET", f"/v1/runs/{self.run}", Prefer="wait=30"),
            "read": lambda: self.caller.ask("GET", "/v1/runs?limit=20"),
            "stream": self.stream,
            "end": self.end,
        }

    def stream(self) -> None:
        """To the first event."""
        with contextlib.closing(self.caller.stream(self.run)) as connection:
            read = b""
            while b"event: queued" not in read:
                piece = connection.recv(1 << 16)
                if not piece or b" 503 " in read:
                    raise RuntimeError(f"no event came: {read[:200]!r}")
                read += piece

    def end(self) -> None:
        """A recorder's run, from its beginning to its end, with nothing in between."""
        run = new_run_id()
        self.caller.ask("PUT", f"/v1/runs/{run}", b"{}")
        self.caller.ask("POST", f"/v1/runs/{run}/end", b"{}")


def _streams(greedy: list[Caller]) -> Iterator[socket.socket]:
    run = greedy[0].submit()
    for number in range(1000):
        yield greedy[number % len(greedy)].stream(run)


def _waits(greedy: list[Caller]) -> Iterator[socket.socket]:
    run = greedy[0].submit()
    for number in range(16):
        one = greedy[number % len(greedy)]
        yield one.opened(one.head("GET", f"/v1/runs/{run}", Prefer="wait=30"))


def _bodies(greedy: list[Caller]) -> Iterator[socket.socket]:
    piece = b"x" * (8 << 20)
    for number in range(48):  # 384 MiB on the disk of temporary files
        one = greedy[number % len(greedy)]
        yield one.opened(one.head("POST", "/v1/audits", Content_Length=256 << 20), piece)


def _connections(greedy: list[Caller]) -> Iterator[socket.socket]:
    for number in range(2500):
        yield greedy[0].opened(b"GET /v1/runs HTTP/1.1\r\nHost: loc" if number % 2 else b"")


def _busy(kind: str, greedy: list[Caller], going: threading.Event) -> None:
    """In a process of its own: requests without a pause."""
    items = [{"custom_id": str(number), "source": f"x = {number}\n"} for number in range(100)]
    audit = json.dumps({"items": items}).encode()

    def client(one: Caller) -> None:
        while True:
            with contextlib.suppress(RuntimeError, OSError):
                if kind == "audits":
                    one.ask("POST", "/v1/audits", audit)
                elif kind == "queue":
                    one.submit()
                else:
                    one.ask("GET", "/v1/findings?limit=1000")
                    one.ask("PUT", f"/v1/runs/{new_run_id()}", b"{}")
                going.set()

    for one in greedy * (1 if kind == "audits" else 4):
        threading.Thread(target=client, args=(one,), daemon=True).start()
    threading.Event().wait()


HELD = {"streams": _streams, "waits": _waits, "body room": _bodies, "connections": _connections}
BUSY = ("queue", "database", "audits")
PROCESSOR = "processor, by two busy programs"
"""The control: nobody asks the service for anything; what a request is slowed down by is the machine's share."""


THINGS = (*HELD, *BUSY, PROCESSOR)


def _burn(_: str, __: list[Caller], going: threading.Event) -> None:
    going.set()
    while True:
        pass


@contextlib.contextmanager
def taken(kind: str, greedy: list[Caller]) -> Iterator[None]:
    """All that this tenant can get of it, meanwhile."""
    if kind in HELD:
        with contextlib.ExitStack() as held:
            for one in HELD[kind](greedy):
                held.enter_context(contextlib.closing(one))
            time.sleep(0.3)
            yield
        time.sleep(0.3)
        return
    spawn = multiprocessing.get_context("spawn")
    going = spawn.Event()
    target, count = (_burn, 2) if kind == PROCESSOR else (_busy, 1)
    processes = [spawn.Process(target=target, args=(kind, greedy, going), daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        going.wait(60)
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()
        time.sleep(0.5)


def timed(asked: Asked, asks: int, into: Mapping[str, list[float]], refused: dict[str, int]) -> None:
    """Each kind so many times, by turns; what was refused is counted, and has no time."""
    for _ in range(asks):
        for kind, ask in asked.kinds().items():
            began = time.perf_counter()
            try:
                ask()
            except (RuntimeError, OSError):
                refused[kind] += 1
                continue
            into[kind].append(1000 * (time.perf_counter() - began))


def compared(others: list[Caller], greedy: list[Caller], rounds: int, asks: int) -> Iterator[list[str]]:
    """Rows of the table: each thing, and each kind of request while it is taken; asked with a key for each thing."""
    for thing, caller in zip(THINGS, others, strict=True):
        asked = Asked(caller)
        quiet: dict[str, list[float]] = defaultdict(list)
        busy: dict[str, list[float]] = defaultdict(list)
        refused: dict[str, int] = defaultdict(int)
        for _ in range(rounds):
            timed(asked, asks, quiet, refused)
            with taken(thing, greedy):
                timed(asked, asks, busy, refused)
        for kind in asked.kinds():
            calm = quiet[kind]
            if not calm or not busy[kind]:
                yield [thing, kind, "", "", "", "", str(refused[kind]), "refused"]
                continue
            ratio = middle(busy[kind]) / middle(calm)
            said = "" if ratio <= TARGET else "above 2"
            yield [
                thing, kind, f"{middle(calm):.1f}", f"{middle(busy[kind]):.1f}", f"{max(busy[kind]):.0f}",
                f"{ratio:.1f}", str(refused[kind]), said,
            ]  # fmt: skip


def cost(pid: int) -> tuple[float, float, int]:
    """CPU seconds so far, MiB resident and threads of a process."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    seconds = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(stat[21]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20), int(stat[17])


def idle(service: Service, one: Caller) -> str:
    """What idle streams cost the web process."""

    def used() -> tuple[float, float, int]:
        before = cost(service.process.pid)
        time.sleep(IDLE_SECONDS)
        after = cost(service.process.pid)
        return (after[0] - before[0]) / IDLE_SECONDS, after[1], after[2]

    run = one.submit()
    without = used()
    held = [one.stream(run) for _ in range(IDLE)]
    for connection in held:
        connection.recv(1 << 16)
    with_them = used()
    for connection in held:
        connection.close()
    return (
        f"{IDLE} idle streams: {100 * (with_them[0] - without[0]):.1f} % of a core, "
        f"{with_them[1] - without[1]:.0f} MiB, {with_them[2] - without[2]} threads more."
    )


def keys(environment: Mapping[str, str], tenant: str, count: int) -> list[str]:
    """Secrets of new keys of a tenant."""
    command = [str(Path(sys.executable).with_name("backprobe")), "key", "create", "bench", "--scope", "admin"]
    environ = os.environ | dict(environment)
    made = [
        subprocess.run([*command, "--tenant", tenant], env=environ, check=True, capture_output=True, text=True)
        for _ in range(count)
    ]
    return [one.stdout.strip() for one in made]


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--asks", type=int, default=8)
    parser.add_argument("--stacks", default="embedded,PostgreSQL + Redis")
    parser.add_argument("--rates", choices=("off", "default"), default="off")
    arguments = parser.parse_args()
    rates = UNLIMITED if arguments.rates == "off" else {}
    rows, costs = [], []
    for stack in arguments.stacks.split(","):
        with stores(stack) as where, tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home:
            environment = {**where, **rates, "BACKPROBE_HOME": home, "BACKPROBE_API_KEY": "bench",
                           "BACKPROBE_MOST_QUEUED": "2000"}  # fmt: skip
            with serving(environment, "--no-worker") as service:
                greedy = [Caller(service.port, secret) for secret in keys(environment, "greedy", 4)]
                others = [Caller(service.port, secret) for secret in keys(environment, "other", 1 + len(THINGS))]
                costs.append(f"{stack}: {idle(service, others.pop())}")
                rows += [[stack, *row] for row in compared(others, greedy, arguments.rounds, arguments.asks)]
    head = ("stack", "taken by another", "request", "quiet p50, ms", "busy p50, ms", "busy longest, ms", "ratio",
            "refused", "")  # fmt: skip
    told = f"Rates: {arguments.rates}. {'  '.join(costs)}"
    write("fairness", "One tenant while another takes all it can", f"{table(head, rows)}\n\n{told}")


if __name__ == "__main__":
    main()
