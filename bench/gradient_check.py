"""What a check of gradients costs, in plain steps of the same model, and how many copies of the process it needs.

usage: python -m bench.gradient_check [--models mlp,lstmcell] [--sets 3] [--write]

Three fresh processes in turn: plain steps, three steps under capture, three under capture with the check, which looks
at the first and the third. Each tells the processor time of its steps, with that of its copies, so that other work on
the machine does not count. The cost is the difference of the last two over the least plain step, as a median over sets.
A copy computes the forward pass of one step; one of them for each step goes on through its backward call.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.tables import middle, spread, table, write

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "bench" / "training" / "check_cost.py"
MODELS = ("mlp", "resnet18", "gpt2", "charrnn", "pinn", "lstmcell", "fifty")
STEPS = 3
PLAIN_STEPS = 20
CHECKED_STEPS = 2


def work(model: str, mode: str, target: str) -> None:
    """The measured process."""
    from backprobe.capture import Options, run_path

    end = run_path(
        PROGRAM,
        [model, str(STEPS), target],
        Options(check="full" if mode == "checked" else "off"),
        lambda _frames: None,
    )
    if end.own_errors or end.exit_code:
        sys.exit(f"{end.exit_code}, {end.own_errors} internal errors, the first: {end.own_error}")


def measured(model: str, mode: str, folder: Path) -> dict[str, Any]:
    """What a fresh process tells of its steps."""
    target = folder / f"{model}-{mode}.json"
    plain = [sys.executable, "-W", "ignore", str(PROGRAM), model, str(PLAIN_STEPS), str(target)]
    under = [sys.executable, "-W", "ignore", "-m", "bench.gradient_check", "--work", model, mode, str(target)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(plain if mode == "plain" else under, cwd=ROOT, env=environment, check=True)
    return json.loads(target.read_text())


def row(model: str, sets: int) -> list[str]:
    """One model's line."""
    costs: list[float] = []
    copies = 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(sets):
            plain, captured, checked = (
                measured(model, mode, Path(folder)) for mode in ("plain", "captured", "checked")
            )
            costs.append((checked["all"] - captured["all"]) / plain["least"])
            copies = checked["copies"] - captured["copies"]
    print(model, costs, copies, flush=True)
    return [model, f"{copies / CHECKED_STEPS:g}", spread(costs, "{:.0f}"), f"{middle(costs) / copies:.1f}"]


def main(given: Sequence[str] | None = None) -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the table of some models, as that of all is")
    parser.add_argument("--work", nargs=3, metavar=("MODEL", "MODE", "FILE"))
    asked = parser.parse_args(given)
    if asked.work:
        work(*asked.work)
        return
    models = asked.models.split(",")
    rows = [row(model, asked.sets) for model in models]
    head = ["model", "copies a checked step", "two checked steps, in plain steps", "plain steps a copy"]
    text = (
        "What `--check-gradients` adds to three steps of which two are checked, in processor time of the program and "
        f"of its copies. Median of {asked.sets} (least to most).\n\n{table(head, rows)}"
    )
    if asked.write or set(models) == set(MODELS):
        write("gradient_check", "What a check of gradients costs", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
