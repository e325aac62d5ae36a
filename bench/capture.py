"""CPU time of small programs under capture, by tier, against the same program plain.

usage: python -m bench.capture [--rounds 5]
       python -m bench.capture --once PROGRAM MODE      (one measurement in this process; prints seconds)

Each measurement is a fresh process that has imported torch and warmed up; only the program itself is timed, by the
process's CPU clock, the encoding of its record included. Plain and the tiers take turns.
"""

import argparse
import io
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

from bench.tables import middle, pair_ratios, spread, table, write

PROGRAMS = Path(__file__).parent / "programs"
TIERS = ("state", "grad", "full")


def once(program: str, mode: str) -> float:
    """CPU seconds of one run of the program in this process; mode is "plain" or a tier."""
    from backprobe import capture

    path = PROGRAMS / f"{program}.py"
    capture.warm()
    code = compile(path.read_text(), str(path), "exec")
    kept: list[bytes] = []
    with redirect_stdout(io.StringIO()):
        started = time.process_time()
        if mode == "plain":
            exec(code, {"__name__": "__main__", "__file__": str(path)})  # the plain half of the pair
        else:
            capture.run_path(path, [], capture.Options(tier=mode), kept.append)
        spent = time.process_time() - started
    if mode != "plain" and not kept:
        raise RuntimeError(f"{program} left no record")
    return spent


def fresh(program: str, mode: str) -> float:
    """Do the same in a separate process."""
    command = [sys.executable, "-m", "bench.capture", "--once", program, mode]
    done = subprocess.run(command, cwd=PROGRAMS.parents[1], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure every program and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", nargs=2, metavar=("PROGRAM", "MODE"))
    asked = parser.parse_args()
    if asked.once:
        print(once(*asked.once))
        return
    rows = []
    for path in sorted(PROGRAMS.glob("*.py")):
        spent: dict[str, list[float]] = {mode: [] for mode in ("plain", *TIERS)}
        for _ in range(asked.rounds):
            for mode, values in spent.items():
                values.append(fresh(path.stem, mode))
        ratios = [spread(pair_ratios(spent[tier], spent["plain"]), "{:.2f}") for tier in TIERS]
        rows.append([f"`{path.stem}`", f"{middle(spent['plain']) * 1e3:.1f}", *ratios])
    head = ["program", "plain, CPU ms", *(f"`{tier}`, times" for tier in TIERS)]
    body = (
        "CPU time of the program under capture over plain, record encoded; median (least to most) "
        f"of {asked.rounds} rounds, pure Python.\n\n{table(head, rows)}"
    )
    write("capture", "Capture, tutorial-size programs", body)


if __name__ == "__main__":
    main()
