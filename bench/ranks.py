"""Sixty-four ranks of one job report at once: how long their requests take, what is lost, what another tenant feels.

usage: python -m bench.ranks [--ranks 64] [--seconds 60] [--step 0.1] [--stacks "PostgreSQL + Redis"]

One job is recorded first, at default sampling. Its frames are then put into as many senders as there are ranks, at the
pace of the job, one step in so many seconds; the senders are the recorder's own, with its buffers, its pace and its
spool, in four processes on the same cores as the service. Meanwhile another tenant submits once a second, as it did
before they began. Lost is what the runs' records lack at the end of what was put, row by row. The reaper of the service
judges the runs as they go on. Rates are the defaults.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backprobe.record import MAGIC, TABLES, FrameReader
from backprobe.recorder import record_sender
from backprobe.recorder.connection import Answer, Connection
from backprobe.recorder.target import Target
from bench.fairness import Caller, keys
from bench.service import Service, serving, stores
from bench.tables import table, write

PROCESSES = 4
QUIET_SECONDS = 20.0
TARGET_MS = 250.0
END_SECONDS = 120.0
"""For the reaper to write the ends that were handed to it."""
MODEL = "mlp"

Frames = list[tuple[int, bytes]]
"""What a capture handed to its sink, with the number of the step after which it did."""


def recorded(steps: int) -> Frames:
    """A job's frames."""
    from backprobe.capture.options import Options
    from backprobe.capture.program.watch import Watch
    from bench.recorder import training

    frames: Frames = []
    done = 0
    step, model, optimizer = training(MODEL)
    watch = Watch(Options(entry="watch"), lambda several: frames.append((done, several)))
    watch.start([model, optimizer], ["model", "optimizer"], None)
    for done in range(steps):  # noqa: B007 - the sink reads it
        step()
    watch.stop(None)
    return frames


class Timed(Connection):
    """A connection that keeps how long each request took."""

    seen: tuple[tuple[str, int, float], ...] = ()
    """Kind, status and seconds of each request of this process."""

    def ask(self, method: str, path: str, body: bytes | None = None, media: str = "application/json") -> Answer:
        """As of `Connection`."""
        began = time.perf_counter()
        answer = super().ask(method, path, body, media)
        kind = "frames" if "/frames/" in path else "end" if path.endswith("/end") else "begin"
        Timed.seen += ((kind, answer.status, time.perf_counter() - began),)
        return answer


def ranks(port: int, key: str, numbers: Sequence[int], world: int, frames: Frames, step: float, out: Any) -> None:
    """Some of the ranks, in a process of their own; what they saw goes into `out`."""
    record_sender.Connection = Timed
    senders: list[record_sender.Sender] = []
    with tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home:
        for number in numbers:
            labels = {"group": "bench", "rank": str(number), "world_size": str(world)}
            target = Target(url=f"http://127.0.0.1:{port}", key=key, labels=labels, capture={"tier": "full"})
            senders.append(record_sender.Sender(target, home=Path(home)))
        began = time.monotonic()
        for at, several in frames:
            time.sleep(max(0.0, began + at * step - time.monotonic()))
            for sender in senders:
                sender.put(several)
        closing = [threading.Thread(target=sender.close, args=({}, 60.0)) for sender in senders]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        told = [
            (sender.health.run, sender.health.state, sender.health.dropped, sender.health.requests)
            for sender in senders
        ]
        out.put((Timed.seen, told))


def submits(caller: Caller, until: threading.Event, seconds: float) -> list[float]:
    """How long a submit took, once a second, until then; at most so many seconds."""
    taken: list[float] = []
    ends = time.monotonic() + seconds
    while not until.is_set() and time.monotonic() < ends:
        began = time.perf_counter()
        run = caller.submit()
        taken.append(time.perf_counter() - began)
        caller.ask("POST", f"/v1/runs/{run}/cancel")
        until.wait(max(0.0, 1.0 - taken[-1]))
    return taken


def rows_of(frames: bytes) -> Counter[str]:
    """Rows of the record that the frames make, by table."""
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    reader.feed(frames)
    record = reader.record()
    return Counter() if record is None else Counter({table: len(getattr(record, table)) for table in TABLES})


def count_lost_rows(caller: Caller, run: str, put: Counter[str]) -> int | None:
    """How many of the rows that were put are not in what the service gives back; None: the run has not ended."""
    deadline = time.monotonic() + END_SECONDS
    while not json.loads(caller.ask("GET", f"/v1/runs/{run}", Prefer="wait=30"))["ended"]:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.1)
    body = caller.ask("GET", f"/v1/runs/{run}/record", Accept="application/vnd.backprobe.record")
    return (put - rows_of(body.removeprefix(MAGIC))).total()


def together(service: Service, environment: Mapping[str, str], asked: argparse.Namespace, frames: Frames) -> list[str]:
    """A row of the table: one stack."""
    key = keys(environment, "ranks", 1)[0]
    other = Caller(service.port, keys(environment, "other", 1)[0])
    quiet = submits(other, threading.Event(), QUIET_SECONDS)
    spawn = multiprocessing.get_context("spawn")
    out = spawn.Queue()
    split = [range(first, asked.ranks, PROCESSES) for first in range(PROCESSES)]
    jobs = [
        spawn.Process(target=ranks, args=(service.port, key, numbers, asked.ranks, frames, asked.step, out))
        for numbers in split
    ]
    over = threading.Event()
    busy: list[float] = []
    feeling = threading.Thread(target=lambda: busy.extend(submits(other, over, 3600.0)))
    for job in jobs:
        job.start()
    feeling.start()
    said = [out.get() for _ in jobs]
    over.set()
    feeling.join()
    for job in jobs:
        job.join()
    seen = [item for several, _ in said for item in several]
    told = [item for _, several in said for item in several]
    put = rows_of(b"".join(several for _, several in frames))
    caller = Caller(service.port, key)
    missing = {run: count_lost_rows(caller, run, put) for run, state, *_ in told if state == "closed"}
    refused = Counter(status for _, status, _ in seen if status not in (200, 201, 204))
    row = [str(sum(1 for kind, *_ in seen if kind == "frames")), f"{max(item[3] for item in told)}"]
    for kind in ("frames", "end"):
        taken = sorted(1000 * seconds for of, _, seconds in seen if of == kind)
        row.append(f"{statistics.median(taken):.0f} / {taken[int(0.95 * len(taken))]:.0f} / {taken[-1]:.0f}")
    states = Counter("open" if missing.get(run, 0) is None else state for run, state, *_ in told)
    row += [
        str(sum(count or 0 for count in missing.values())),
        ", ".join(f"{count} {state}" for state, count in states.items()),
    ]
    row.append(", ".join(f"{count} x {status or 'no answer'}" for status, count in refused.items()) or "none")
    row.append(f"{1000 * statistics.median(quiet):.0f} -> {1000 * statistics.median(busy):.0f}")
    return [*row, f"{statistics.median(busy) / statistics.median(quiet):.1f}"]


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--step", type=float, default=0.1, help="seconds of a step of the job")
    parser.add_argument("--stacks", default="PostgreSQL + Redis")
    parser.add_argument("--dry", action="store_true", help="print only")
    asked = parser.parse_args()
    frames = recorded(round(asked.seconds / asked.step))
    size = sum(len(several) for _, several in frames)
    rows: list[list[str]] = []
    for stack in asked.stacks.split(","):
        with stores(stack) as where, tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home:
            environment = {**where, "BACKPROBE_HOME": home, "BACKPROBE_API_KEY": "bench"}
            with serving(environment, "--no-worker") as service:
                rows.append([stack, *together(service, environment, asked, frames)])
    head = ["stack", "requests with frames", "of a rank, at most", "frames: p50 / p95 / longest, ms",
            "end: p50 / p95 / longest, ms", "rows lost", "ranks", "other answers", "another's submit, ms",
            "ratio"]  # fmt: skip
    body = (
        f"{asked.ranks} ranks, {frames[-1][0] + 1} steps of {asked.step} s, {size / 1e6:.2f} MB of frames each; "
        f"the aim is {TARGET_MS:.0f} ms at p95, and twice the quiet submit.\n\n{table(head, rows)}"
    )
    if asked.dry:
        print(body, f"\nload {os.getloadavg()[0]:.1f}", file=sys.stdout)
        print(json.dumps(rows))
    else:
        write("ranks", "Sixty-four ranks at once", body)


if __name__ == "__main__":
    main()
