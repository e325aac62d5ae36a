"""The records of the compiled core and of its Python twin, row by row, over generated programs.

python -m tests.oracle.cores --programs 1000
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
from itertools import zip_longest
from typing import Any, Final

import msgspec

from backprobe.record import TABLES
from tests.oracle.campaign import draw_programs, recorded, warmed

TIMES: Final = frozenset({"time_ns", "started_ns", "duration_ns", "own_ns"})
"""What no two runs have in common."""


def rows_of(source: str) -> dict[str, list[str]]:
    """Each table of a program's record as text, row by row, without its times."""
    record = recorded(source, "full")
    return {table: [repr(_timeless(row)) for row in getattr(record, table)] for table in TABLES}


def _timeless(row: Any) -> Any:
    there = TIMES & {field.name for field in msgspec.structs.fields(row)}
    return msgspec.structs.replace(row, **dict.fromkeys(there, 0)) if there else row


def _child(programs: int, first: int) -> None:
    warmed()
    for index, source in enumerate(draw_programs(first, programs)):
        print(json.dumps([source, rows_of(source)]), flush=True)
        if index % 25 == 0:
            gc.collect()


def unlike(first: dict[str, list[str]], other: dict[str, list[str]]) -> list[str]:
    """The first row of each table that two records do not have in common."""
    found: list[str] = []
    for table, rows in first.items():
        for mine, theirs in zip_longest(rows, other[table]):
            if mine != theirs:
                found.append(f"{table}: c {mine}\n  python {theirs}")
                break
    return found


def main() -> int:
    """Compare; 0 if every row is the same."""
    parser = argparse.ArgumentParser(description="the records of both cores, row by row")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=900, help="seed of the programs")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(given.programs, given.first)
        return 0
    command = [sys.executable, "-m", "tests.oracle.cores", "--child", *sys.argv[1:]]
    children = [
        subprocess.Popen(
            command, env={**os.environ, "OMP_NUM_THREADS": "1", "BACKPROBE_CORE": core}, stdout=subprocess.PIPE, text=True
        )
        for core in ("c", "python")
    ]  # fmt: skip
    done = differ = 0
    for lines in zip_longest(*(child.stdout or () for child in children)):
        if None in lines:
            break
        (source, first), (_, other) = (json.loads(line) for line in lines)
        found, done = unlike(first, other), done + 1
        differ += bool(found)
        if found and differ <= 5:
            print(source, *found[:4], sep="\n", flush=True)
    failed = any(child.wait() for child in children)
    print(f"{done} programs, {differ} with rows that the cores do not share")
    return 1 if failed or differ or done == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
