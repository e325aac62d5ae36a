"""What a training step costs under capture on the device: the six models of the bench, and a transformer of 100 million.

Fresh processes, one plain, one for each tier and each other tool that is here, take turns of a few steps; a figure is
the least wall time of a step over the least of plain. Device memory is the greatest that torch had given out. Other
tools are left out where they are not installed, and the row says so. The CPU's figures are those of a stand-in: they
show that every line runs, and prove no target.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.overhead import options
from bench.rivals import MODULES
from tests.gpu.place import SECONDS_LEFT, NotHere, Place, Row, expect, rows

ROOT: Final = Path(__file__).parents[2]
TRAIN: Final = ROOT / "bench" / "training" / "device.py"
TIERS: Final = ("state", "full")
RIVALS: Final = ("torchlens", "wandb.watch")
MODELS: Final = ("large", "resnet18", "gpt2", "mlp", "charrnn", "pinn", "lstmcell")
TARGETS: Final = {"large": {"state": 1.05, "full": 1.15}, "resnet18": {"state": 1.05, "full": 1.15}}
OTHERS: Final = {"state": 1.3, "full": 1.3}
MOST_MEMORY: Final = 1.05
TURN_SECONDS: Final = 0.4
START_SECONDS: Final = 90.0
MODEL_SECONDS: Final = 40.0
"""For one model, in which its processes start, take turns and end."""


def prove(place: Place) -> Iterator[Row]:
    """One row for each model."""
    return rows(place, _checks(place))


def _checks(place: Place) -> Iterator[tuple[str, Callable[[], str]]]:
    ends = time.monotonic() + min(280.0, float(os.environ.get(SECONDS_LEFT) or 300) - 30)
    for model in ("small",) if place.small else MODELS:
        asked = "small" if model == "large" and not place.is_cuda else model
        named = f"transformer ({asked})" if asked in ("large", "small") else asked
        yield f"overhead of {named}", partial(_model, place, asked, ends)


class Worker:
    """A process that trains when asked."""

    def __init__(self, model: str, mode: str, device: str) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "tests.gpu.overhead", model, mode, device]
        threads = {"OMP_NUM_THREADS": "1"} if device == "cpu" else {}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **threads, "WANDB_SILENT": "true"}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, *words: object) -> Any:
        """The answer to a question, as `device_pace.serve` gives it."""
        with suppress(BrokenPipeError):  # then there is no answer either
            print(*words, file=self.process.stdin, flush=True)
        return self.answer()

    def answer(self) -> Any:
        """Its next line.

        Raises:
            RuntimeError: it has ended; the text is the last it said.
        """
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            said = self.process.stderr.read() if self.process.stderr else ""
            raise RuntimeError(f"a measured process ended with {self.process.wait()}: {said.strip()[-300:]}")
        return json.loads(line)

    def close(self) -> int:
        """Let it come to its end; its exit code."""
        if self.process.stdin:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            for stream in (self.process.stdout, self.process.stderr):
                if stream:
                    stream.close()


def _model(place: Place, model: str, ends: float) -> str:
    if model == "gpt2" and importlib.util.find_spec("transformers") is None:
        raise NotHere("transformers is not installed")
    if time.monotonic() > ends:
        raise NotHere("the time of the part was spent on the models before")
    absent = [mode for mode in RIVALS if importlib.util.find_spec(MODULES[mode]) is None]
    rivals = [] if place.small else [mode for mode in RIVALS if mode not in absent]
    workers = {mode: Worker(model, mode, place.device) for mode in ("plain", *TIERS, *rivals)}
    broken: list[str] = []
    try:
        once = {mode: _first(mode, worker, broken) for mode, worker in workers.items()}
        running = {mode: worker for mode, worker in workers.items() if mode not in broken}
        spent = _turns(running, once, 2 if place.small else 6, min(ends, time.monotonic() + MODEL_SECONDS))
        peaks = {mode: worker.ask("memory")["peak"] for mode, worker in running.items()}
    finally:
        codes = {mode: worker.close() for mode, worker in workers.items()}
    expect(not any(codes[mode] for mode in ("plain", *TIERS)), f"exit codes {codes}")
    ratios = {mode: min(spent[mode]) / min(spent["plain"]) for mode in running if mode != "plain"}
    note = _note(once["plain"], spent, ratios, peaks, [*absent, *broken])
    if place.is_cuda:
        wanted = TARGETS.get(model, OTHERS)
        over = [f"{mode} {ratios[mode]:.2f}" for mode in TIERS if ratios[mode] > wanted[mode]]
        over += [f"{mode} memory" for mode in TIERS if peaks[mode] > MOST_MEMORY * peaks["plain"]]
        expect(not over, f"over its target: {', '.join(over)}; {note}")
    return note


def _first(mode: str, worker: Worker, broken: list[str]) -> dict[str, float]:
    """What a process says once it has warmed up; another tool may not get that far."""
    try:
        return worker.answer()
    except RuntimeError as error:
        if mode not in RIVALS:
            raise
        print(f"    {mode} cannot train this model: {error}", file=sys.stderr)
        broken.append(mode)
        return {}


def _turns(workers: dict[str, Worker], once: dict[str, Any], most: int, ends: float) -> dict[str, list[float]]:
    """Seconds of a step in each turn: every process runs for about as long, one after the other."""
    found: dict[str, list[float]] = {mode: [] for mode in workers}
    for turn in range(most):
        if turn and time.monotonic() > ends:
            break
        for mode, worker in workers.items():
            steps = max(2, min(200, int(TURN_SECONDS / max(once[mode]["once"], 1e-4))))
            found[mode].append(worker.ask("steps", steps))
    return found


def _note(
    once: dict[str, float], spent: dict[str, list[float]], ratios: dict[str, float], peaks: dict[str, float],
    missing: list[str],
) -> str:  # fmt: skip
    parts = [f"{once['parameters'] / 1e6:.2f} M parameters", f"plain {min(spent['plain']) * 1e3:.2f} ms"]
    parts += [f"{mode} {ratio:.2f}x, memory {peaks[mode] / peaks['plain']:.2f}x" for mode, ratio in ratios.items()]
    parts += [f"plain's memory {peaks['plain']:.0f} MiB at most"]
    return "; ".join([*parts, *(f"{mode} not seen" for mode in missing)])


def _work(model: str, mode: str, device: str) -> None:
    """The measured process."""
    if mode not in TIERS:
        import runpy

        sys.argv[:] = [str(TRAIN), model, mode, device]
        sys.path.insert(0, str(TRAIN.parent))
        runpy.run_path(str(TRAIN), run_name="__main__")
        return
    from backprobe.capture import run_path
    from bench import pace

    end = run_path(TRAIN, [model, mode, device], options(mode), pace.outlet.write)
    if end.own_errors:
        sys.exit(f"{end.own_errors} internal errors, the first: {end.own_error}")


if __name__ == "__main__":
    _work(*sys.argv[1:4])
