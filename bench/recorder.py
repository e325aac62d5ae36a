"""What a training job pays for its recorder: a job that sends, and one whose service never answers, beside a plain one.

usage: python -m bench.recorder [--models mlp,lstmcell] [--steps 1000] [--sets 2]

Fresh processes, one plain, one that sends and one whose service is silent, take turns of twenty steps; only one runs at
a time. A figure is CPU time (the process's clock, all its threads) over that of plain, of the turns of one set summed;
`first 20` is the first turn alone, seven steps of which are taken in full. Sampling is the default. Two other ways to
the same goal stand beside it (`rivals.py`): `wandb.watch`, offline, logs every step to a local file, and where it is
not installed its row says so; `hooks` on every module and parameter save reductions to a local file every ten steps.
Bytes are those of the requests' bodies that the service took and of the files that the job left in its own folder.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.tables import spread, table, write

ROOT = Path(__file__).parents[1]
TURN_STEPS = 20
MODES = ("plain", "sends", "silent service", "hooks", "wandb.watch")


def training(model_name: str) -> tuple[Any, Any, Any]:
    """A step, its model and its optimizer."""
    sys.path[0:0] = [str(ROOT / "bench" / "training")]
    import torch
    from models import build  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs = build(model_name)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        loss = model(*inputs)
        loss.backward()
        optimizer.step()
        return loss

    return step, model, optimizer


def job(model_name: str, mode: str, url: str) -> None:
    """The measured process: so many steps for each line that it is sent, and their CPU seconds."""
    step, model, optimizer = training(model_name)
    after: Any = dict
    with contextlib.ExitStack() as stack:
        if mode in ("sends", "silent service"):
            import backprobe

            watching = stack.enter_context(backprobe.watch(model, optimizer, url=url))
            after = watching.health
        if mode in ("hooks", "wandb.watch"):
            from bench.rivals import under

            step, _ = under(mode, step, model, (), optimizer)
        loss = None
        for line in sys.stdin:
            began = time.process_time()
            for _ in range(int(line)):
                loss = step()
            print(json.dumps(time.process_time() - began), flush=True)
    told = after()
    values = {} if not told else {"requests": told.requests, "frames": told.sent_frames, "state": told.state}
    print(json.dumps({"loss": None if loss is None else loss.item(), **values}), flush=True)


def served() -> None:
    """A service that takes everything, in a process of its own; its address is printed first.

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
    for one in kept:
        one.close()


def one_set(model: str, modes: tuple[str, ...], steps: int, urls: dict[str, str]) -> dict[str, dict[str, Any]]:
    """CPU seconds of each turn, and what the job told at its end, by mode."""
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        taken = _taken(urls["sends"])
        folders = {mode: Path(home) / str(at) for at, mode in enumerate(modes)}
        jobs = {}
        for mode, folder in folders.items():
            folder.mkdir()
            environment = os.environ | {"BACKPROBE_HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
            command = [sys.executable, "-m", "bench.recorder", "--job", model, mode, urls.get(mode, "")]
            piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
            jobs[mode] = stack.enter_context(subprocess.Popen(command, env=environment, cwd=ROOT, **piped))
        found: dict[str, dict[str, Any]] = {mode: {"turns": []} for mode in modes}
        for _ in range(steps // TURN_STEPS):
            for mode, process in jobs.items():
                process.stdin.write(f"{TURN_STEPS}\n")
                process.stdin.flush()
                found[mode]["turns"].append(json.loads(process.stdout.readline()))
        for mode, process in jobs.items():
            began = time.monotonic()
            process.stdin.close()
            found[mode] |= json.loads(process.stdout.readline()) | {"end_seconds": time.monotonic() - began}
            process.wait()
            found[mode]["bytes"] = sum(one.stat().st_size for one in folders[mode].rglob("*") if one.is_file())
        found["sends"]["bytes"] += _taken(urls["sends"]) - taken
        return found


def _taken(url: str) -> int:
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
                found = [one_set(model, modes, steps, urls) for _ in range(sets)]
                rows += [row(model, mode, found) for mode in modes[1:]]
                if len(modes) < len(MODES):
                    rows.append([model, MODES[-1], *["not installed"] * 7])
    finally:
        taker.kill()
        taker.communicate()
    return rows


def row(model: str, mode: str, found: list[dict[str, dict[str, Any]]]) -> list[str]:
    """What one mode cost, over plain."""
    whole = [sum(one[mode]["turns"]) / sum(one["plain"]["turns"]) for one in found]
    first = [one[mode]["turns"][0] / one["plain"]["turns"][0] for one in found]
    light = [_middle(one[mode]["turns"]) / _middle(one["plain"]["turns"]) for one in found]
    same = all(one[mode]["loss"] == one["plain"]["loss"] for one in found)
    last = found[-1][mode]
    return [
        model, mode, spread(whole, "{:.3f}"), spread(first, "{:.2f}"), spread(light, "{:.3f}"),
        str(last.get("requests", 0)), f"{last['bytes']:,}", f"{last['end_seconds']:.1f}", "yes" if same else "no",
    ]  # fmt: skip


def _middle(turns: list[float]) -> float:
    return sorted(turns)[len(turns) // 2]


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="mlp,lstmcell")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=2)
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--service", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.service:
        served()
    elif args.job:
        job(*args.job)
    else:
        rows = measured(args.models.split(","), args.steps, args.sets)
        head = ["model", "job", "mean", "first 20", "median turn", "requests", "bytes", "end, s", "same loss"]
        body = f"CPU time over plain, {args.steps:,} steps, {args.sets} sets; least and most in brackets.\n\n"
        write("recorder", "What a recorder costs its training job", body + table(head, rows))


if __name__ == "__main__":
    main()
