"""What a training job pays for its recorder: a job that sends, and one whose service never answers, beside a plain one.

usage: python -m bench.recorder [--models mlp,lstmcell] [--steps 1000] [--sets 2]

A fresh process builds the model and makes a plain turn; a fork of it for each way to train takes turns of twenty steps,
only one at a time, and another begins each round. The first ten turns of all are plain, for a process may be a fifth
slower than its neighbour for where its memory lies: a figure is CPU time (the process's clock, all its threads) of the
turns that follow over those ten, divided by the same of the job that stays plain. `first 20` is the first turn
under the recorder alone, seven steps of which are taken in full. Sampling is the default. Two other ways to
the same goal stand beside it (`rivals.py`): `wandb.watch`, offline, logs every step to a local file, and where it is
not installed its row says so; `hooks` on every module and parameter save reductions to a local file every ten steps.
Bytes are those of the requests' bodies that the service took and of the files that the job left in its own folder.
"""

import argparse
import contextlib
import importlib.util
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.tables import spread, table, write

ROOT = Path(__file__).parents[1]
TURN_STEPS = 20
PLAIN_TURNS = 10
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(8 << 30)}
"""glibc keeps what is freed. Else a plain job may give its gradients back to the kernel at each step and a watched one
not, or the other way about, by where the heap ends: watched jobs were seen at 0.79 and 1.15 of plain for that alone."""

MODES = ("plain", "sends", "silent service", "hooks", "wandb.watch")


def training(model_name: str) -> tuple[Any, Any, Any]:
    """A step, which returns its loss, its model and its optimizer."""
    sys.path[0:0] = [str(ROOT / "bench" / "training")]
    import torch
    from models import build  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs = build(model_name)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(*inputs)
        loss.backward()
        optimizer.step()
        return loss

    return step, model, optimizer


def job(trained: tuple[Any, Any, Any], mode: str, url: str, folder: Path, asked: Connection) -> None:
    """The measured process: so many steps for each number that it is sent, and their CPU seconds; 0 ends it."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    os.environ |= {"BACKPROBE_HOME": str(folder), "TMPDIR": str(folder)}
    tempfile.tempdir = None  # asked for again
    step, model, optimizer = trained
    for _ in range(PLAIN_TURNS):
        asked.send(_seconds(step, asked.recv()))
    after: Any = dict
    with contextlib.ExitStack() as stack:
        if mode in ("sends", "silent service"):
            import backprobe

            watching = stack.enter_context(backprobe.watch(model, optimizer, url=url))
            after = watching.health
        if mode in ("hooks", "wandb.watch"):
            from bench.rivals import wrap_step

            step, _ = wrap_step(mode, step, model, (), optimizer)
        while steps := asked.recv():
            asked.send(_seconds(step, steps))
    told = after()
    values = {} if not told else {"requests": told.requests, "frames": told.sent_frames, "state": told.state}
    asked.send({"loss": step().item(), **values})


def _seconds(step: Any, times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        step()
    return time.process_time() - began


def served() -> None:
    """A service that takes everything, in a separate process; its address is printed first.

    A GET answers how many bytes of bodies it took so far.
    """
    taken: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            taken.append(len(self.rfile.read(int(self.headers.get("Content-Length", 0)))))
            self.send_response(204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_PUT  # noqa: N815 - http.server's name

        def do_GET(self) -> None:
            text = str(sum(taken)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """The address of a service that takes connections and never answers."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=50)
    kept: list[socket.socket] = []

    def take() -> None:
        with contextlib.suppress(OSError):
            while True:
                kept.append(listening.accept()[0])

    threading.Thread(target=take, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()
    for connection in kept:
        connection.close()


def one_set(model: str, modes: tuple[str, ...], steps: int, urls: dict[str, str]) -> dict[str, dict[str, Any]]:
    """CPU seconds of each turn, and what the job told at its end, by mode."""
    trained = training(model)
    for _ in range(TURN_STEPS):
        trained[0]()
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as home:
        taken = _count_taken(urls["sends"])
        folders = {mode: Path(home) / str(at) for at, mode in enumerate(modes)}
        jobs: dict[str, tuple[Connection, Any]] = {}
        for mode, folder in folders.items():
            folder.mkdir()
            ours, theirs = fork.Pipe()
            process = fork.Process(target=job, args=(trained, mode, urls.get(mode, ""), folder, theirs))
            process.start()
            jobs[mode] = ours, process
        found: dict[str, dict[str, Any]] = {mode: {"turns": []} for mode in modes}
        for turn in range(PLAIN_TURNS + steps // TURN_STEPS):
            for at in range(len(modes)):
                mode = modes[(turn + at) % len(modes)]
                jobs[mode][0].send(TURN_STEPS)
                found[mode]["turns"].append(jobs[mode][0].recv())
        for mode, (asked, process) in jobs.items():
            began = time.monotonic()
            asked.send(0)
            found[mode] |= asked.recv() | {"end_seconds": time.monotonic() - began}
            process.join()
            found[mode]["bytes"] = _size(folders[mode])
        found["sends"]["bytes"] += _count_taken(urls["sends"]) - taken
        return found


def _size(folder: Path) -> int:
    """Bytes of the files in a folder; what is taken away meanwhile (a server's socket) has none."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _count_taken(url: str) -> int:
    with urllib.request.urlopen(url) as answer:
        return int(answer.read())


def measured(models: list[str], steps: int, sets: int) -> list[list[str]]:
    """A row for each model and mode."""
    rows: list[list[str]] = []
    modes = MODES if importlib.util.find_spec("wandb") else MODES[:-1]
    taker = subprocess.Popen(
        [sys.executable, "-m", "bench.recorder", "--service"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        port = (taker.stdout or sys.stdin).readline().strip()
        with silent() as address:
            urls = {"sends": f"http://127.0.0.1:{port}", "silent service": address}
            for model in models:
                found = [_in_a_fresh_process(model, modes, steps, urls) for _ in range(sets)]
                rows += [row(model, mode, found) for mode in modes[1:]]
                if len(modes) < len(MODES):
                    rows.append([model, MODES[-1], *["not installed"] * 7])
    finally:
        taker.kill()
        taker.communicate()
    return rows


def _in_a_fresh_process(
    model: str, modes: tuple[str, ...], steps: int, urls: dict[str, str]
) -> dict[str, dict[str, Any]]:
    asked = json.dumps([model, modes, steps, urls])
    command = [sys.executable, "-m", "bench.recorder", "--set", asked]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ | ALLOCATOR, stdout=subprocess.PIPE, check=True)
    return json.loads(ended.stdout)


def row(model: str, mode: str, found: list[dict[str, dict[str, Any]]]) -> list[str]:
    """What one mode cost, over plain."""
    ratios = [
        [_over_its_own(turn[mode]["turns"], how) / _over_its_own(turn["plain"]["turns"], how) for turn in found]
        for how in (statistics.mean, _first, statistics.median)
    ]
    same = all(turn[mode]["loss"] == turn["plain"]["loss"] for turn in found)
    last = found[-1][mode]
    return [
        model, mode, spread(ratios[0], "{:.3f}"), spread(ratios[1], "{:.2f}"), spread(ratios[2], "{:.3f}"),
        str(last.get("requests", 0)), f"{last['bytes']:,}", f"{last['end_seconds']:.1f}", "yes" if same else "no",
    ]  # fmt: skip


def _over_its_own(turns: list[float], how: Callable[[list[float]], float]) -> float:
    """What the turns took, over the plain ones that the same process began with."""
    return how(turns[PLAIN_TURNS:]) / statistics.median(turns[:PLAIN_TURNS])


def _first(turns: list[float]) -> float:
    return turns[0]


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="mlp,lstmcell")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=2)
    parser.add_argument("--set", help=argparse.SUPPRESS)
    parser.add_argument("--service", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.service:
        served()
    elif args.set:
        model, modes, steps, urls = json.loads(args.set)
        print(json.dumps(one_set(model, tuple(modes), steps, urls)))
    else:
        rows = measured(args.models.split(","), args.steps, args.sets)
        head = ["model", "job", "mean", "first 20", "median turn", "requests", "bytes", "end, s", "same loss"]
        body = f"CPU time over plain, {args.steps:,} steps, {args.sets} sets; least and most in brackets.\n\n"
        write("recorder", "What a recorder costs its training job", body + table(head, rows))


if __name__ == "__main__":
    main()
