"""What one tenant is slowed down by another who takes all that it can get, and what idle streams cost.

usage: python -m bench.fairness [--rounds 3] [--asks 8] [--stacks "embedded,PostgreSQL + Redis"] [--rates default]
                                [--thing audits --thing queue]      (only these, printed and not written down)

One tenant submits, waits for a run that has ended, reads, opens a stream up to its first event, and ends a recorder's
run; by turns in quiet time and while the other takes all it can of one thing. The busy one's clients are another
process on the same cores. No worker runs. Rates are not limited, so that what is left is the sharing itself; with
`--rates default` they are those of an install: rounds times asks of at most 9 are then within a key's own rate.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from backprobe.client import new_run_id
from bench.caller import Caller
from bench.greedy_tenant import THINGS, hold_capacity
from bench.service import Service, serving, stores
from bench.tables import middle, table, write

UNLIMITED: Mapping[str, str] = {
    f"BACKPROBE_RATE_{name}": "0" for name in ("READS", "SUBMITS", "TENANT_READS", "TENANT_SUBMITS")
}
TARGET = 2.0
"""Times as slow as in quiet time, at most."""

IDLE = 500
IDLE_SECONDS = 5.0


class TenantNeeds:
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


def timed(asked: TenantNeeds, asks: int, into: Mapping[str, list[float]], refused: dict[str, int]) -> None:
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


def compared(
    things: Sequence[str], others: list[Caller], greedy: list[Caller], rounds: int, asks: int
) -> Iterator[list[str]]:
    """Rows of the table: each thing, and each kind of request while it is taken; asked with a key for each thing."""
    for thing, caller in zip(things, others, strict=True):
        asked = TenantNeeds(caller)
        quiet: dict[str, list[float]] = defaultdict(list)
        busy: dict[str, list[float]] = defaultdict(list)
        refused: dict[str, int] = defaultdict(int)
        for _ in range(rounds):
            timed(asked, asks, quiet, refused)
            with hold_capacity(thing, greedy):
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


def idle(service: Service, caller: Caller) -> str:
    """What idle streams cost the web process."""

    def used() -> tuple[float, float, int]:
        before = cost(service.process.pid)
        time.sleep(IDLE_SECONDS)
        after = cost(service.process.pid)
        return (after[0] - before[0]) / IDLE_SECONDS, after[1], after[2]

    run = caller.submit()
    without = used()
    held = [caller.stream(run) for _ in range(IDLE)]
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
    return [answer.stdout.strip() for answer in made]


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--asks", type=int, default=8)
    parser.add_argument("--stacks", default="embedded,PostgreSQL + Redis")
    parser.add_argument("--rates", choices=("off", "default"), default="off")
    parser.add_argument("--thing", action="append", choices=THINGS)
    arguments = parser.parse_args()
    things = arguments.thing or list(THINGS)
    rates = UNLIMITED if arguments.rates == "off" else {}
    rows, costs = [], []
    for stack in arguments.stacks.split(","):
        with stores(stack) as where, tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home:
            environment = {**where, **rates, "BACKPROBE_HOME": home, "BACKPROBE_API_KEY": "bench",
                           "BACKPROBE_MOST_QUEUED": "2000"}  # fmt: skip
            with serving(environment, "--no-worker") as service:
                greedy = [Caller(service.port, secret) for secret in keys(environment, "greedy", 4)]
                others = [Caller(service.port, secret) for secret in keys(environment, "other", 1 + len(things))]
                costs.append(f"{stack}: {idle(service, others.pop())}")
                rows += [[stack, *row] for row in compared(things, others, greedy, arguments.rounds, arguments.asks)]
    head = ("stack", "taken by another", "request", "quiet p50, ms", "busy p50, ms", "busy longest, ms", "ratio",
            "refused", "")  # fmt: skip
    told = f"Rates: {arguments.rates}. {'  '.join(costs)}"
    if things == list(THINGS):
        write("fairness", "One tenant while another takes all it can", f"{table(head, rows)}\n\n{told}")
    else:
        print(table(head, rows), told, sep="\n\n")


if __name__ == "__main__":
    main()
