"""Programs run once, and what came of them kept: the same program under the same engine gives the same record.

Only what rules do with a record changes from day to day, so a second measurement takes seconds. Kept is also what torch
itself says of a program, plain and under `detect_anomaly`.
"""

import hashlib
import json
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Self

from backprobe.record import Record, loads
from tests.corpus.runner import Runner

ROOT = Path(__file__).parents[2]
KEPT = Path(os.environ.get("BACKPROBE_RECORDS", ROOT / ".records"))


class Records:
    """`of(program)`: its record, from the folder if it is there; `with` ends the process that captures the others."""

    def __init__(self, folder: Path = KEPT) -> None:
        self._folder = folder
        self._runner: Runner | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def of(self, program: str, *, every: int | None = None) -> Record:
        """The record of a program that ran as `train.py`; with `every`, of every so-manieth step."""
        return loads(self.stream(program, every=every))

    def stream(self, program: str, *, every: int | None = None) -> bytes:
        """The bytes of that record, frame by frame as they came."""
        path = self._place(program, "bprec" if every is None else f"{every}.bprec")
        if not path.exists():
            self._running().captured(program, path, every=every)
        return path.read_bytes()

    def plain(self, program: str, *, anomaly: bool = False) -> list[tuple[int, str]]:
        """The lines that torch itself names, as `Runner.plain` tells them."""
        path = self._place(program, "anomaly.json" if anomaly else "plain.json")
        if not path.exists():
            path.write_text(json.dumps(self._running().plain(program, anomaly=anomaly)))
        return [(line, text) for line, text in json.loads(path.read_text())]

    def _place(self, program: str, kind: str) -> Path:
        name = hashlib.sha256(engine() + program.encode()).hexdigest()[:32]
        return self._folder / f"{name}.{kind}"

    def _running(self) -> Runner:
        if self._runner is None:
            self._runner = Runner()
        return self._runner

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            self._runner.__exit__()


@cache
def engine() -> bytes:
    """Digest of what decides about a record beside the program: capture, record and torch."""
    digest = hashlib.sha256(version("torch").encode())
    for folder in ("capture", "record"):
        for path in sorted((ROOT / "backprobe" / folder).rglob("*")):
            if path.suffix in {".py", ".c", ".h"}:
                digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()
