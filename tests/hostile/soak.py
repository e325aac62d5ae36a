"""Thousands of runs in a row, every fifth of them hostile: descriptors, processes, memory and files end where they began.

usage: python -m tests.hostile.soak [--runs 20000] [--level process] [--at-once 2]

Exit code 0: everything is back, and every good run gave the same number.
"""

import argparse
import collections
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from store.runs.limits import Limits
from tests.hostile.field import PLACES, UID, Field
from tests.hostile.program_texts import OWN, read_programs
from workers.sandbox.levels.capabilities import confinement
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import Supervisor

GOOD = "import torch\nx = torch.arange(3.0, requires_grad=True)\n(x * x).sum().backward()\nprint(x.grad.tolist())\n"
SAYS = b"[0.0, 2.0, 4.0]\n"
LIMITS = Limits(
    cpu_seconds=2, wall_seconds=20, memory_bytes=300 << 20, output_bytes=1 << 20, record_bytes=4 << 20, disk_bytes=0
)
GROWTH_BYTES = 48 << 20
"""Of the supervisor, from the first hundredth to the end: what a leak of 3 KB a run would take in 20,000."""

CONTROL_GROUPS = Path("/sys/fs/cgroup")
Counts = collections.Counter[str]


def hostile_texts() -> list[str]:
    """Programs that end by themselves or soon; those that wait for a clock would make the soak one of clocks."""
    texts = [program.text for program in read_programs(OWN)]
    return [text for text in texts if not re.search(r"OUTCOME:.*(cpu|wall|exceeded$|exceeded \|)", text)]


def state() -> dict[str, int]:
    """What must be as it was."""
    me = psutil.Process()
    left = len(me.children(recursive=True))
    files = sum(
        1
        for place in PLACES
        for folder, folders, names in os.walk(place)
        for name in (*folders, *names)
        if _owner(os.path.join(folder, name)) == UID
    )
    groups = sum(1 for _, folders, _ in os.walk(CONTROL_GROUPS) for name in folders if f"backprobe-{me.pid}" in name)
    return {
        "descriptors": me.num_fds(),
        "threads": me.num_threads(),
        "children": left,
        "zombies": sum(1 for one in me.children() if one.status() == psutil.STATUS_ZOMBIE),
        "files": files,
        "cgroups": groups,
        "rss_bytes": me.memory_info().rss,
    }


def _owner(path: str) -> int:
    try:
        return os.lstat(path).st_uid
    except OSError:
        return -1


def soak(supervisor: Supervisor, field: Field, numbers: Iterator[int], ended: Counts, wrong: list[str]) -> None:
    """Runs until the numbers are used up; one of several threads."""
    texts = hostile_texts()
    for number in numbers:
        hostile = number % 5 == 4
        source = field.filled(texts[number // 5 % len(texts)]) if hostile else GOOD
        outcome = supervisor.run(Job(files={"main.py": source}, entry="main.py", limits=LIMITS))
        ended[f"{'hostile' if hostile else 'good'}: {outcome.status} {outcome.reason}"] += 1
        if not hostile and (outcome.status, outcome.facts.stdout) != ("succeeded", SAYS):
            wrong.append(f"run {number}: {outcome.status} {outcome.reason} {outcome.facts}")


class Shared:
    """Numbers for several threads."""

    def __init__(self, numbers: range) -> None:
        self._numbers, self._lock = iter(numbers), threading.Lock()

    def __iter__(self) -> Iterator[int]:
        """Itself."""
        return self

    def __next__(self) -> int:
        """The next number that no other thread has."""
        with self._lock:
            return next(self._numbers)


def in_threads(supervisor: Supervisor, field: Field, numbers: range, at_once: int) -> tuple[Counts, list[str]]:
    """How many runs ended how, and what was wrong."""
    ended, wrong, shared = Counts(), list[str](), Shared(numbers)
    threads = [
        threading.Thread(target=soak, args=(supervisor, field, shared, ended, wrong)) for _ in range(max(1, at_once))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ended, wrong


def settled(supervisor: Supervisor, like: dict[str, int]) -> dict[str, int]:
    """The state, once it is as before but for memory, or after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = state()
        if supervisor.wait_warm(10) and all(found[name] <= like[name] for name in found if name != "rss_bytes"):
            break
        time.sleep(0.2)  # between two looks; the deadline decides
    return state()


def main() -> int:
    """Soak, and say what was and what is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--level", default="process")
    parser.add_argument("--at-once", type=int, default=2)
    asked = parser.parse_args()
    chosen = confinement(asked.level, UID)
    began, total, wrong = time.monotonic(), Counts(), list[str]()
    with Supervisor(lambda: exec_zygote("", chosen), confinement=chosen, ahead=False) as supervisor:
        assert supervisor.wait_warm(120), supervisor.failure
        field = Field(supervisor, b"")
        in_threads(supervisor, field, range(max(10, asked.runs // 100)), asked.at_once)
        before = settled(supervisor, state())
        print(f"before {before}", flush=True)
        step = max(1, asked.runs // 20)
        for start in range(0, asked.runs, step):
            ended, faults = in_threads(supervisor, field, range(start, min(start + step, asked.runs)), asked.at_once)
            total += ended
            wrong += faults
            print(f"{start + step} runs in {time.monotonic() - began:.0f} s: {state()}", flush=True)
        after = settled(supervisor, before)
        field.close()
    print(f"after  {after}\n{dict(total.most_common())}\n" + "\n".join(wrong[:5]), flush=True)
    moved = [name for name in before if name != "rss_bytes" and after[name] > before[name]]
    grown = after["rss_bytes"] - before["rss_bytes"] > GROWTH_BYTES
    print(f"not back: {moved or 'nothing'}{', memory' * grown}; wrong numbers: {len(wrong)}")
    return int(bool(moved or grown or wrong))


if __name__ == "__main__":
    sys.exit(main())
