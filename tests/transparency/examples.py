"""Public training scripts, taken as they are: each runs plain and under `backprobe run`, and the two are compared.

usage: python -m tests.transparency.examples FOLDER [NAME ...] [--keep FOLDER] [--tier full] [--check-gradients]

A script that leaves its seed to chance (mnist_forward_forward, regression) has no two runs to compare. FOLDER is a checkout of github.com/pytorch/examples; nothing of it is kept. What the scripts would load from the network
or from libraries that are not installed is made up by `standins`. Prints each script's differences and report, and ends
with 1 if there is a difference. With --keep the folders, records and reports stay.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
STANDINS = HERE / "standins"
SECONDS = 280


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One start of a public script.

    Attributes:
        path: Below the checkout; its folder is copied. argv: Its arguments: few steps, no accelerator.
        times: Pattern of durations that it prints, which are left out of the comparison.
    """

    name: str
    path: str
    argv: str = ""
    times: str = r"(?!)"


TEXT = "--data text --emsize 32 --nhid 32 --bptt 10 --epochs 2 --log-interval 3"
MILLISECONDS = r"(ms/batch|time:) +\d+\.\d+"
SCRIPTS = (
    Script(name="mnist", path="mnist/main.py", argv="--epochs 1 --log-interval 2 --no-accel"),
    Script(name="lstm", path="word_language_model/main.py", argv=TEXT, times=MILLISECONDS),
    Script(name="transformer", path="word_language_model/main.py", argv=f"{TEXT} --model Transformer --lr 1", times=MILLISECONDS),
    Script(name="vae", path="vae/main.py", argv="--epochs 2 --log-interval 1 --no-accel"),
    Script(name="reinforce", path="reinforcement_learning/reinforce.py"),
    Script(name="actor_critic", path="reinforcement_learning/actor_critic.py"),
    Script(name="siamese", path="siamese_network/main.py", argv="--epochs 1 --batch-size 32 --log-interval 2 --no-accel"),
    Script(name="gcn", path="gcn/main.py", argv="--epochs 10 --val-every 2 --no-accel", times=r"\(\d+\.\d+s\)"),
    Script(name="gat", path="gat/main.py", argv="--epochs 2 --val-every 1 --num-heads 2 --hidden-dim 8 --no-accel", times=r"\(\d+\.\d+s\)"),
    Script(name="rnn", path="mnist_rnn/main.py", argv="--epochs 1 --log-interval 2"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ran:
    """What one start did: its exit code, and its two streams."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Both:
    """A script plain and captured, in folders of the same name, with the printed report on the captured one."""

    plain: Ran
    captured: Ran
    report: str
    files: tuple[frozenset[tuple[str, bytes]], frozenset[tuple[str, bytes]]]


def text(folder: Path) -> None:
    """Three texts of made-up words, some more frequent than others."""
    folder.mkdir()
    draw = random.Random(0)
    for name, lines in (("train", 250), ("valid", 30), ("test", 30)):
        words = [[f"w{int(80 * draw.random() ** 3)}" for _ in range(12)] for _ in range(lines)]
        (folder / f"{name}.txt").write_text("\n".join(map(" ".join, words)) + "\n")


def run_both(checkout: Path, script: Script, folder: Path, tier: str = "full", *, check: bool = False) -> Both:
    """Run it plain and captured; `folder` is empty and gets the record and the report too.

    Args:
        check: The captured one checks its gradients.
    """
    libraries, report = folder / "libraries", folder / "report.txt"
    shutil.copytree(STANDINS, libraries)
    environment = {**os.environ, "PYTHONPATH": str(libraries), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    ran, left = [], []
    ours = f"-m backprobe run --tier {tier} --exit-zero --output={report} --save={folder / 'record'}".split()
    ours += ["--check-gradients"] * check
    for command in ([], ours):
        project = folder / "project"
        shutil.copytree(checkout / Path(script.path).parent, project)
        if "--data text" in script.argv:
            text(project / "text")
        start = [sys.executable, *command, Path(script.path).name, *script.argv.split()]
        done = subprocess.run(start, cwd=project, env=environment, capture_output=True, timeout=SECONDS, check=False)
        out, err = (re.sub(script.times, r"~", stream.decode()) for stream in (done.stdout, done.stderr))
        ran.append(Ran(done.returncode, out, err))
        paths = [path for path in project.rglob("*") if path.is_file() and path.suffix != ".pyc"]
        left.append(frozenset((str(path.relative_to(project)), path.read_bytes()) for path in paths))
        shutil.rmtree(project)
    return Both(ran[0], ran[1], report.read_text() if report.exists() else "", (left[0], left[1]))


def differences(both: Both) -> list[str]:
    """What the captured start did otherwise than the plain one."""
    found = [
        f"{key}:\n  plain:    {getattr(both.plain, key)!r}\n  captured: {getattr(both.captured, key)!r}"
        for key in ("code", "out", "err")
        if getattr(both.plain, key) != getattr(both.captured, key)
    ]
    changed = sorted({name for name, _ in both.files[0] ^ both.files[1]})
    return [*found, *([f"files that differ: {changed}"] if changed else [])]


def main() -> None:
    """Run what is asked for and print what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("names", nargs="*", help=", ".join(script.name for script in SCRIPTS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--tier", default="full")
    parser.add_argument("--check-gradients", action="store_true")
    asked = parser.parse_args()
    wrong = 0
    for script in SCRIPTS:
        if asked.names and script.name not in asked.names:
            continue
        with tempfile.TemporaryDirectory(prefix="backprobe-examples-") as name:
            folder = asked.keep / script.name if asked.keep else Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            both = run_both(asked.checkout, script, folder, asked.tier, check=asked.check_gradients)
        found = differences(both)
        wrong += len(found)
        said = f"exit code {both.plain.code}, {len(both.plain.out)} characters, {len(found)} differences"
        print(f"=== {script.name}: {said}")
        print(*found, both.report, sep="\n", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
