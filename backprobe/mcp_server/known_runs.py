"""The runs that an agent may ask about: those it made, records in its folder, and runs of the service, by name."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backprobe.record import BadRecord, loads
from backprobe.rules import judge

if TYPE_CHECKING:
    from backprobe.client import Client
    from backprobe.mcp_server.engines import Program
    from backprobe.record import Record
    from backprobe.rules import Finding, Judgement

MOST_RUNS: Final = 16
"""Records that are kept in memory; the oldest goes first."""

_SERVICE: Final = re.compile("run_[0-7][0-9A-HJKMNP-TV-Z]{25}")
MOST_RECORD_BYTES: Final = 256 << 20


class NoRun(LookupError):
    """There is no run of that name; the message says which there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A run.

    Attributes:
        findings: Those that are not suppressed, worst first; answers number them from 1.
        program: How it was run here; None: it came as a record.
    """

    name: str
    record: Record
    judgement: Judgement
    ending: str
    ended_well: bool
    program: Program | None = None

    @property
    def findings(self) -> list[Finding]:
        """What is said of it."""
        return [finding for finding in self.judgement.findings if finding.suppressed is None]

    def finding(self, number: int) -> Finding:
        """Return the finding with this number, from 1.

        Raises:
            NoRun: there is none.
        """
        found = self.findings
        if not 1 <= number <= len(found):
            there = f"they are numbered from 1 to {len(found)}" if found else "it has none"
            raise NoRun(f"run {self.name} has no finding {number}: {there}")
        return found[number - 1]


@dataclass(slots=True)
class Runs:
    """The runs of one session.

    Attributes:
        folder: Record files are read below it. client: of the service; None: there is none.
    """

    folder: Path
    client: Client | None = None
    kept: OrderedDict[str, KeptRun] = field(default_factory=OrderedDict[str, KeptRun])
    made: int = 0

    def add(
        self,
        record: Record,
        *,
        ending: str,
        ended_well: bool,
        name: str = "",
        program: Program | None = None,
    ) -> KeptRun:
        """Judge a record, and keep it under a name: `local-1` and so on where it has none."""
        if not name:
            self.made += 1
            name = f"local-{self.made}"
        run = KeptRun(
            name=name,
            record=record,
            judgement=judge(record),
            ending=ending,
            ended_well=ended_well,
            program=program,
        )
        self.kept[name] = run
        while len(self.kept) > MOST_RUNS:
            self.kept.popitem(last=False)
        return run

    def get(self, name: str) -> KeptRun:
        """Find the run of a name: one that was made here, the id of a run of the service, or a record file.

        Raises:
            NoRun: there is none, or it cannot be read.
        """
        if name in self.kept:
            self.kept.move_to_end(name)
            return self.kept[name]
        if _SERVICE.fullmatch(name):
            return self._fetch_run(name)
        path = path_in_folder(self.folder, name)
        if path is None or not path.is_file():
            there = ", ".join(self.kept) or "none yet"
            raise NoRun(
                f"there is no run {name!r}: a name of list_runs (here: {there}), or a record file in the folder"
            )
        if path.stat().st_size > MOST_RECORD_BYTES:
            raise NoRun(f"{name!r} is larger than {MOST_RECORD_BYTES >> 20} MiB")
        return self._read(path.read_bytes(), name)

    def _fetch_run(self, name: str) -> KeptRun:
        if self.client is None:
            raise NoRun(f"{name} is a run of a service, and there is none: start `backprobe mcp --url ADDRESS`")
        from backprobe.client import ApiError, ServiceAway

        try:
            return self._read(self.client.record(name), name)
        except (ApiError, ServiceAway) as error:
            raise NoRun(f"the service has no record of {name}: {error}") from None

    def _read(self, data: bytes, name: str) -> KeptRun:
        try:
            record = loads(data)
        except BadRecord as error:
            raise NoRun(f"{name!r} is not a record that can be read: {error}") from None
        end = record.end
        well = end is not None and end.exit_code in (0, None)
        ending = "ended well" if well else "was cut off" if end is None else f"ended with exit code {end.exit_code}"
        return self.add(record, ending=ending, ended_well=well, name=name)


def path_in_folder(folder: Path, name: str) -> Path | None:
    """Return a path of the folder, symbolic links followed; None if it leads out of it."""
    if "\0" in name:
        return None
    path = (folder / name).resolve()
    return path if path.is_relative_to(folder) else None
