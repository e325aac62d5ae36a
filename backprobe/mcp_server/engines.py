"""Where the agent's programs run: in a child process of this machine, or in the service's sandbox. A record comes back.

1. A program never sees the protocol: its stdin is empty, and what it prints goes into files.
2. On this machine it has the rights of this user; `--allow-run` says so. After its seconds, when the client cancels the
   call and when this server ends, all of it is killed.
3. It starts in the server's folder, so that it finds the user's data. Its script is run where it lies; texts that an
   edit has changed stand for the files in its process alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

import backprobe
from backprobe.child_groups import wait_or_kill
from backprobe.record import BadRecord, loads
from backprobe.tiers import EVERY_TIER

if TYPE_CHECKING:
    from backprobe.client import Client, Run
    from backprobe.record import Record

MOST_OUTPUT_BYTES: Final = 2000
"""That are kept of the end of what a program printed."""


MOST_SECONDS: Final = 3600

_SERVICE_WAIT_SECONDS: Final = 2.0
"""In one request: between two, the call may be canceled."""


class NotRun(Exception):
    """The program could not be run; the message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run.

    Attributes:
        files: Texts by their path. entry: which of them is started.
        lies_in: The folder that the paths are of; None: the texts are of no files, and are written into a folder made
            for them.
        seconds: That it may run.
    """

    files: Mapping[str, str]
    entry: str
    arguments: tuple[str, ...] = ()
    tier: str = "full"
    lies_in: Path | None = None
    seconds: float = 60.0

    def check(self) -> None:
        """Refuse what cannot be run.

        Raises:
            NotRun: the tier or the seconds cannot be, a path leaves the folder, or the entry is none of the files.
        """
        if self.tier not in EVERY_TIER:
            raise NotRun(f"there is no tier {self.tier!r}: one of {', '.join(EVERY_TIER)}")
        if not 0 < self.seconds <= MOST_SECONDS:
            raise NotRun(f"seconds={self.seconds:g}: a number above 0, up to {MOST_SECONDS}")
        for path in self.files:
            if not path or Path(path).is_absolute() or ".." in Path(path).parts or "\0" in path:
                raise NotRun(f"the path {path!r} leaves the program's folder")
        if self.entry not in self.files:
            raise NotRun(f"{self.entry!r} is none of the files: {', '.join(self.files)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """What came of a run.

    Attributes:
        ending: How it ended, in words. output: the end of what it printed, stdout then stderr.
        run: Its id on a service; "" here.
    """

    record: Record
    ending: str
    output: str
    ended_well: bool
    run: str = ""


class Engine(Protocol):
    """Runs programs."""

    def execute(self, program: Program, stop: threading.Event) -> Executed:
        """Run one.

        Args:
            program: What is run.
            stop: Set when nobody waits for the answer any more: then it is ended.

        Raises:
            NotRun: there is no record.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """A child process for each program: `backprobe run` of this interpreter, in this folder."""

    folder: Path

    def execute(self, program: Program, stop: threading.Event) -> Executed:
        """Run it, and read its record."""
        program.check()
        with tempfile.TemporaryDirectory(prefix="backprobe-mcp-") as made:
            root = Path(made)
            place = program.lies_in or root / "program"
            overlay = root / "overlay.json"
            if program.lies_in is None:
                _write(place, program.files)
            overlay.write_bytes(msgspec.json.encode(_find_changed_texts(place, program.files)))
            record, outputs = root / "record", [root / "stdout", root / "stderr"]
            command = [
                sys.executable, "-m", "backprobe", "run", "--tier", program.tier, "--save", str(record),
                "--format", "concise", "--output", str(root / "report"), "--sources", str(place),
                "--overlay", str(overlay), str(place / program.entry), *program.arguments,
            ]  # fmt: skip
            code = _exit_code(command, self.folder, outputs, program.seconds, stop)
            if stop.is_set():
                raise NotRun("the call was canceled, and the program was ended")
            return _read_execution(record, code, _tail(outputs), program.seconds)


def _find_changed_texts(place: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Texts by real path that are not those of the files."""
    return {
        os.path.realpath(place / path): text
        for path, text in files.items()
        if text.encode("utf-8", "surrogateescape") != (place / path).read_bytes()
    }


def _write(place: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", errors="surrogateescape")


def _exit_code(
    command: list[str], folder: Path, outputs: list[Path], seconds: float, stop: threading.Event
) -> int | None:
    """Run a command; return its exit code, or None if it was killed, with all that it had started.

    It is killed after these seconds, or when nobody waits for it.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(_import_path())}
    environment.pop("BACKPROBE_API_KEY", None)
    with outputs[0].open("wb") as out, outputs[1].open("wb") as err:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
            start_new_session=True,
        )  # fmt: skip
        return wait_or_kill(process, seconds, stop)


def _import_path() -> Iterable[str]:
    """Where this very package lies, and what the caller's environment names."""
    yield str(Path(backprobe.__file__).parents[1])
    if os.environ.get("PYTHONPATH"):
        yield os.environ["PYTHONPATH"]


def _tail(outputs: Iterable[Path]) -> str:
    parts: list[str] = []
    for path in outputs:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_OUTPUT_BYTES))
            text = file.read().decode("utf-8", "replace")
        parts.append(text if size <= MOST_OUTPUT_BYTES else f"[{size - MOST_OUTPUT_BYTES} bytes before]{text}")
    return "\n".join(part for part in parts if part.strip())


def _read_execution(path: Path, code: int | None, output: str, seconds: float) -> Executed:
    late = "" if code is not None else f"; it was stopped after {seconds:g} s: give it more `seconds`"
    if not path.exists() or not path.stat().st_size:
        raise NotRun(f"the program left no record{late or f' (exit code {code})'}; it printed:\n{output}")
    try:
        record = loads(path.read_bytes())
    except BadRecord as error:
        raise NotRun(f"the record cannot be read ({error}){late}; it printed:\n{output}") from None
    end = record.end
    if code is None:
        ending = f"stopped after {seconds:g} s; what it did until then is judged"
    elif end is None:
        ending = f"its process died with exit code {code}; what it did until then is judged"
    else:
        ending = "ended well" if end.exit_code == 0 else f"ended with exit code {end.exit_code} ({end.ending})"
    return Executed(
        record=record,
        ending=ending,
        output=output,
        ended_well=code is not None and end is not None and end.exit_code == 0,
    )


@dataclass(frozen=True, slots=True)
class ServiceEngine:
    """The service at an address: its workers run the programs, and it keeps the runs."""

    client: Client
    labels: Mapping[str, str] = field(default_factory=lambda: {"client": "mcp"})

    def execute(self, program: Program, stop: threading.Event) -> Executed:
        """Submit it, wait for its end, fetch its record."""
        program.check()
        from backprobe.client import ApiError, ServiceAway

        files = [{"path": path, "text": text} for path, text in program.files.items()]
        try:
            run = self.client.submit(
                files=files,
                entry=program.entry,
                arguments=list(program.arguments),
                capture={"tier": program.tier},
                labels=dict(self.labels),
            )
            until = time.monotonic() + program.seconds
            while not run.ended and (left := until - time.monotonic()) > 0:
                run = self.client.run(run.id, wait=min(left, _SERVICE_WAIT_SECONDS))
                if stop.is_set():
                    self.client.cancel(run.id)
                    raise NotRun(f"the call was canceled, and run {run.id} with it")
            if not run.ended:
                raise NotRun(
                    f"run {run.id} is {run.status} after {program.seconds:g} s; list_findings has it once it ended"
                )
            return self._fetch_execution(run)
        except (ApiError, ServiceAway) as error:
            raise NotRun(f"the service refused or did not answer: {error}") from None

    def _fetch_execution(self, run: Run) -> Executed:
        told = run.error or {}
        place = f" at {told['path']}:{told['line']}" if told.get("path") else ""
        ending = "ended well" if run.status == "succeeded" else f"{run.status}: {told.get('type') or ''}{place}"
        printed = self.client.call("GET", f"/v1/runs/{run.id}/output")
        output, message = (
            "".join(printed[name]["tail"] for name in ("stdout", "stderr")),
            str(told.get("message") or ""),
        )
        return Executed(
            record=loads(self.client.record(run.id)),
            ending=ending,
            output=(output if message in output else f"{output.rstrip()}\n{message}")[-MOST_OUTPUT_BYTES:],
            ended_well=run.status == "succeeded",
            run=run.id,
        )
