"""Where the records of a run's processes go: beside the run's own, with a number before the ending.

run.bprec            the program
run.1.bprec          the first child process that it started
run.1.2.bprec        the second one that this child started
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backprobe.record.encoding.codec import MAGIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The place of one process among those of a run.

    Attributes:
        record: Its own record; a path from the root, since a program may change its folder.
        index: A file to which each process that is started, and each that begins, adds a line of JSON.
        numbers: The number that each process on the way from the program to it has among its parent's children.
    """

    record: str
    index: str
    numbers: tuple[int, ...] = ()

    def child(self, number: int) -> Family:
        """Return the place of the process that this one starts as the `number`-th."""
        path = Path(self.record)
        return Family(
            record=str(path.with_name(f"{path.stem}.{number}{path.suffix}")),
            index=self.index,
            numbers=(*self.numbers, number),
        )

    def has_begun(self) -> bool:
        """There is a record with something in it."""
        try:
            return Path(self.record).stat().st_size > len(MAGIC)
        except OSError:
            return False

    def note(self, **told: Any) -> None:
        """Add a line about this process to the index; lines of several processes never mix.

        Raises:
            OSError: it cannot be written.
        """
        line = json.dumps({"record": self.record, "numbers": self.numbers, **told}) + "\n"
        descriptor = os.open(self.index, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """A child process that was to be captured.

    Attributes:
        name: As `multiprocessing` names it. pid: None: it never began to be captured.
    """

    record: Path
    name: str
    pid: int | None


def relatives(index: str) -> list[Relative]:
    """Read the child processes of a run, each followed by its own."""
    told: dict[tuple[int, ...], dict[str, Any]] = {}
    try:
        lines = Path(index).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        row = json.loads(line)
        told.setdefault(tuple(row["numbers"]), {}).update(row)
    rows = (told[numbers] for numbers in sorted(told))
    return [Relative(record=Path(row["record"]), name=row.get("name", ""), pid=row.get("pid")) for row in rows]


def left_over(record: Path) -> Iterator[Path]:
    """List the records that children of an earlier run left beside a file."""
    pattern = re.compile(re.escape(record.stem) + r"(\.[1-9][0-9]*)+" + re.escape(record.suffix))
    return (path for path in record.parent.glob("*") if pattern.fullmatch(path.name) and path.is_file())
