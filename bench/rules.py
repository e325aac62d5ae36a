"""What judging costs: CPU time of all rules beside that of the captured run, and on a record of 100,000 snapshots.

usage: python -m bench.rules [--rounds 5]
       python -m bench.rules --profile      (the most expensive rules and tables on the large record)
       python -m bench.rules --once PROGRAM (one measurement in this process; prints three numbers)

Each pair is measured in one process, one after the other, by its CPU clock: the program under capture, tier full, its
record encoded; then `judge` on the record, decoded, the first time in that process and again, as a worker does that has
judged before. The large record is a real run, captured once.
"""

import argparse
import cProfile
import io
import pstats
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

from bench.tables import middle, spread, table, write

PROGRAMS = Path(__file__).parent / "programs"
ROOT = PROGRAMS.parents[1]
LARGE = """
import torch
from torch import nn

torch.manual_seed(0)
layers = [module for _ in range(10) for module in (nn.Linear(16, 16), nn.LayerNorm(16), nn.ReLU())]
model = nn.Sequential(*layers, nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(32, 16), torch.randn(32, 1)
for _ in range({steps}):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
STEPS = 500
"""Gives a little over 100,000 snapshots."""


def captured(path: Path) -> bytes:
    """The record of a program that ran in this process."""
    from backprobe import capture
    from backprobe.record.encoding.codec import MAGIC

    frames: list[bytes] = [MAGIC]
    with redirect_stdout(io.StringIO()):
        capture.run_path(path, [], capture.Options(tier="full"), frames.append)
    return b"".join(frames)


def once(path: Path) -> tuple[float, float, float]:
    """CPU seconds of a program under capture, of judging what it left, and of judging it again."""
    from backprobe import capture
    from backprobe.record import loads
    from backprobe.rules import judge

    capture.warm()
    began = time.process_time()
    frames = captured(path)
    ran = time.process_time() - began
    times = [ran]
    for _ in range(2):
        record = loads(frames)
        began = time.process_time()
        judge(record)
        times.append(time.process_time() - began)
    return times[0], times[1], times[2]


def fresh(path: Path) -> tuple[float, float, float]:
    """Do the same in a separate process."""
    command = [sys.executable, "-m", "bench.rules", "--once", str(path)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    ran, judged, again = done.stdout.split()[-3:]
    return float(ran), float(judged), float(again)


def large(folder: Path) -> bytes:
    """Return the record of the long run, made in a separate process."""
    program, target = folder / "train.py", folder / "large.bprec"
    program.write_text(LARGE.format(steps=STEPS))
    command = [sys.executable, "-m", "backprobe", "run", "--every", "1", "--exit-zero", "--save", str(target)]
    subprocess.run([*command, str(program)], cwd=ROOT, check=True, capture_output=True)
    return target.read_bytes()


def profile(frames: bytes) -> None:
    """Print what takes the time on the large record."""
    from backprobe.record import loads
    from backprobe.rules import judge

    record = loads(frames)
    with cProfile.Profile() as profiler:
        judge(record)
    stats = pstats.Stats(profiler)
    stats.sort_stats("cumulative").print_stats("backprobe/rules", 45)
    stats.sort_stats("tottime").print_stats(25)


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", type=Path, metavar="PROGRAM")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    if asked.once:
        print(*once(asked.once))
        return
    with tempfile.TemporaryDirectory() as folder:
        frames = large(Path(folder))
        if asked.profile:
            profile(frames)
            return
        report(frames, asked.rounds, Path(folder))


def report(frames: bytes, rounds: int, folder: Path) -> None:
    """Write both tables."""
    from backprobe.record import loads
    from backprobe.rules import RULES, judge

    rows = []
    for path in [*sorted(PROGRAMS.glob("*.py")), folder / "train.py"]:
        taken = [fresh(path) for _ in range(rounds)]
        shares = [100 * again / ran for ran, _, again in taken]
        name = "500 steps of a deep network" if path.stem == "train" else f"`{path.stem}`"
        times = [f"{1e3 * middle([times_taken[n] for times_taken in taken]):.1f}" for n in range(3)]
        rows.append([name, *times, spread(shares, "{:.1f}")])
    record = loads(frames)
    spent = []
    for _ in range(rounds):
        began = time.process_time()
        judge(record)
        spent.append(1e3 * (time.process_time() - began))
    head = ["program", "under capture, CPU ms", "judged first, CPU ms", "judged again, CPU ms", "share of that, %"]
    body = (
        f"{len(RULES)} rules. CPU time of judging a record beside that of the run that left it, tier `full`; median"
        f" (least to most) of {rounds} rounds.\n\n{table(head, rows)}\n"
        f"A record of {len(record.snapshots):,} snapshots ({len(record.tensors):,} tensors, {len(record.nodes):,} "
        f"nodes, {len(record.backward_calls)} backward calls) is judged in {spread(spent, '{:.0f}')} ms of CPU time."
    )
    write("rules", "What judging costs", body)


if __name__ == "__main__":
    main()
