"""What a training step costs under capture, and under other tools, as a ratio to the same step plain.

usage: python -m bench.overhead [--models mlp,lstmcell] [--tiers full] [--sets 3] [--rounds 3] [--seconds 0.4]
       BACKPROBE_CORE=python python -m bench.overhead --models lstmcell --tiers full      (the twin)

Fresh processes, one plain and one under each mode, take turns; only one runs at a time. A figure is the least CPU time
of a step (the process's clock, all its threads; a mean over 60 ms, so that the sending of the record is in it) over
the least of plain. Every step is captured in full and its record leaves the process. Of "sampled" it is the median over
whole periods of a hundred steps, one of them in full, in turns of ten with plain. Only a whole run is written down.
"""

import argparse
import importlib.util
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.rivals import MODULES
from bench.tables import middle, table, write

ROOT = Path(__file__).parents[1]
TRAIN = ROOT / "bench" / "training" / "train.py"
MODELS = ("mlp", "resnet18", "gpt2", "charrnn", "pinn", "lstmcell")
SMALL = ("tiny", "mlp10", "numbers")
TIERS = ("state", "grad", "full", "sampled")
ENDLESS = 2**62
EVERY = 100
"""Of so many steps "sampled" takes one in full."""


def options(tier: str) -> Any:
    """Every step in full, without an end; "sampled" is one of a hundred at the tier `full`."""
    from backprobe.capture import Caps, Options

    caps = Caps(
        record_bytes=ENDLESS,
        rows=ENDLESS,
        tensors=ENDLESS,
        site_times=ENDLESS,
        call_times=ENDLESS,
    )
    fields = Options.__dataclass_fields__
    if tier == "sampled":
        return Options(tier="full", caps=caps, every=EVERY)
    return Options(tier=tier, caps=caps, **({"every": 1} if "every" in fields else {}))


def work(model: str, mode: str) -> None:
    """The measured process."""
    if mode not in TIERS:
        sys.argv[:] = [str(TRAIN), model, mode]
        sys.path[0:0] = [str(TRAIN.parent)]
        runpy.run_path(str(TRAIN), run_name="__main__")
        return
    from backprobe.capture import run_path
    from bench import pace

    end = run_path(TRAIN, [model, mode], options(mode), pace.outlet.write)
    if end.own_errors:
        sys.exit(f"{end.own_errors} internal errors, the first: {end.own_error}")


class Worker:
    """A process that trains when asked."""

    def __init__(self, model: str, mode: str) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "bench.overhead", "--work", model, mode]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "WANDB_SILENT": "true"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.first = self._answer()["first"]

    def ask(self, *words: object) -> Any:
        """The answer to a question, as `pace.serve` gives it."""
        print(*words, file=self.process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a measured process ended with {self.process.wait()}; see above")
        return json.loads(line)

    def close(self) -> None:
        """Let it come to its end; an error of the engine's own shows as its exit code."""
        self.process.stdin.close()
        if self.process.wait(timeout=60):
            raise RuntimeError(f"a measured process ended with {self.process.returncode}; see above")


def cells(model: str, modes: Sequence[str], asked: argparse.Namespace) -> dict[str, dict[str, float]]:
    """The figures of a model: fresh processes, one plain and one for each mode, that take turns."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in ("plain", *modes)}
    counted: dict[str, dict[str, float]] = {}
    for _ in range(asked.sets):
        workers = {name: Worker(model, name) for name in found}
        for name, worker in workers.items():
            memory = worker.ask("memory")
            found[name].setdefault("memory", []).append(memory["peak"] - memory["base"])
            counted[name] = {} if name == "plain" else worker.ask("counts")
        for _ in range(asked.rounds):
            turn = {name: worker.ask("run", asked.seconds) for name, worker in workers.items() if name != "sampled"}
            for name, values in turn.items():
                found[name].setdefault("spent", []).extend(values)
                found[name].setdefault("ratios", []).append(min(values) / min(turn["plain"]))
        for _ in range(asked.periods if "sampled" in workers else 0):
            mine, plain = period(workers["sampled"], workers["plain"])
            found["sampled"].setdefault("spent", []).append(mine)
            found["sampled"].setdefault("ratios", []).append(mine / plain)
        for worker in workers.values():
            worker.close()
    return {name: figures(name, found) | counted[name] for name in modes}


def period(sampled: Worker, plain: Worker) -> tuple[float, float]:
    """CPU seconds of a step, over one whole period of sampling: one step in full and all that are not.

    Both take turns after every tenth of it, so that a machine that slows down slows both.
    """
    totals = [0.0, 0.0]
    for _ in range(10):
        for index, worker in enumerate((sampled, plain)):
            totals[index] += worker.ask("steps", EVERY // 10)
    return totals[0] / EVERY, totals[1] / EVERY


def figures(mode: str, found: dict[str, dict[str, list[float]]]) -> dict[str, float]:
    """What is shown of a mode; of samples, whose blocks are longer than those of plain, the median over periods."""
    mine, plain = found[mode], found["plain"]
    spent, least = min(plain["spent"]), min(plain["memory"])
    median = middle(mine["ratios"])
    ratio = median if mode == "sampled" else min(mine["spent"]) / spent
    return {
        "ratio": ratio,
        "median": median,
        "plain_ms": spent * 1e3,
        "added_ms": (ratio - 1) * spent * 1e3,
        "memory": min(mine["memory"]) / least if least > 1 else float("nan"),
    }


def first_capture() -> list[float]:
    """Milliseconds from `import torch` done to the end of a first small captured program, each in a fresh process.

    Our modules are compiled before, as an installer leaves them, whatever the environment says.
    """
    code = (
        "import time, torch\n"
        "started = time.perf_counter(), time.process_time()\n"
        "from backprobe.capture import run_source\n"
        "run_source('import torch\\nx = torch.ones(2, requires_grad=True)\\n(x * 2).sum().backward()\\n')\n"
        "print((time.process_time() - started[1]) * 1e3)\n"
    )
    command = [sys.executable, "-c", code]
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = {**kept, "PYTHONPYCACHEPREFIX": folder}
        times = [float(subprocess.check_output(command, cwd=ROOT, env=environment, text=True)) for _ in range(6)]
    return times[1:]


def format_row(model: str, mode: str, found: dict[str, float]) -> list[str]:
    """A row of the table."""
    whole = found.get("rows")
    rows = f"{whole:.0f}" if whole is not None else ""
    tensors = found.get("snapshots", found.get("tensors"))
    gradients = found.get("node_passes", found.get("gradients"))
    return [
        f"`{model}`",
        mode,
        f"{found['plain_ms']:.2f}",
        f"**{found['ratio']:.2f}**",
        f"{found['median']:.2f}",
        f"{found['added_ms']:.2f}",
        f"{found['memory']:.2f}",
        rows,
        "" if tensors is None else f"{tensors:.0f}",
        "" if gradients is None else f"{gradients:.0f}",
        f"{found['bytes'] / 1024:.1f}" if "bytes" in found else "",
    ]


HEAD = (
    "model",
    "under",
    "plain, ms",
    "times",
    "median",
    "added, ms",
    "memory, times",
    "rows",
    "tensors",
    "gradients",
    "KiB",
)


def modes(asked: argparse.Namespace) -> tuple[list[str], list[str]]:
    """What is measured, and what is not with the reason."""
    from backprobe.capture import Options

    wanted = asked.tiers.split(",") if asked.tiers else [*TIERS, *MODULES]
    absent = [f"{tool}: not installed (extra `bench`)" for tool in wanted if tool in MODULES and not there(tool)]
    kept = [tool for tool in wanted if tool not in MODULES or there(tool)]
    if "sampled" in kept and "every" not in Options.__dataclass_fields__:
        kept.remove("sampled")
        absent.append("sampled: this version takes no samples")
    return kept, absent


def there(rival: str) -> bool:
    """The rival's package is installed."""
    return importlib.util.find_spec(MODULES[rival]) is not None


def measured(model: str, modes: list[str], asked: argparse.Namespace) -> tuple[dict[str, dict[str, float]], list[str]]:
    """The figures of a model, and which modes it did not run under: one that fails leaves the others."""
    try:
        return cells(model, modes, asked), []
    except RuntimeError:
        found: dict[str, dict[str, float]] = {}
        absent: list[str] = []
    for mode in modes:
        try:
            found |= cells(model, [mode], asked)
        except RuntimeError as error:
            absent.append(f"{model} under {mode}: {error}")
    return found, absent


def main() -> None:
    """Measure and show; write the table after a whole run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="")
    parser.add_argument("--tiers", default="")
    parser.add_argument("--sets", type=int, default=3, help="fresh processes for each model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--periods", type=int, default=3, help="of sampling, for each set")
    parser.add_argument("--write", action="store_true", help="write the table of a part as well")
    parser.add_argument("--work", nargs=2, metavar=("MODEL", "MODE"))
    asked = parser.parse_args()
    if asked.work:
        work(*asked.work)
        return
    kept, absent = modes(asked)
    rows = []
    print(" | ".join(HEAD))
    for model in asked.models.split(",") if asked.models else (*MODELS, *SMALL):
        found, without = measured(model, kept, asked)
        absent += without
        for mode, values in found.items():
            rows.append(format_row(model, mode, values))
            print(" | ".join(rows[-1]), flush=True)
    print(*absent, sep="\n")
    if asked.write or not (asked.models or asked.tiers):
        _write_results(rows, absent, asked)


def _write_results(rows: list[list[str]], absent: list[str], asked: argparse.Namespace) -> None:
    from backprobe.capture.torch_access import native

    first = first_capture()
    body = (
        "CPU time of a training step (Adam) under capture or another tool over the same step plain, one torch thread, "
        f"core `{native.kind}`: the least of {asked.sets} sets of fresh processes that took {asked.rounds} turns each, "
        "and the median over turns. Every step is captured, but of `sampled`: that is the median over "
        f"{asked.sets * asked.periods} whole periods of {EVERY} steps, one of them in full, in turns of "
        f"{EVERY // 10} steps with plain. Rows, tensors, gradients (of nodes) and KiB are those that leave the process "
        "for one step. Memory: what two steps need above what stays between steps, over plain.\n\n"
        f"{table(HEAD, rows)}\n\n"
        f"First capture after `import torch`: {min(first):.0f} ms of CPU (least of {len(first)}).\n\n"
        + "".join(f"* Not run: {line}\n" for line in absent)
    )
    write("overhead", "Capture, training steps", body.rstrip())


if __name__ == "__main__":
    main()
