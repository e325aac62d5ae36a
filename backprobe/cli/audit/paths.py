"""Places in findings as a repository names its files: a run here names them from the script's own folder.

jobs/gpt.py, started as `backprobe run jobs/gpt.py`     gpt.py:3  ->  jobs/gpt.py:3
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from backprobe.cli.audit.programs import shown
from backprobe.rules import Finding, Location


def path_from_here(path: str, folder: Path) -> str:
    """A file of the script's folder named from the working directory; another's as it is."""
    there = folder / path
    return path if Path(path).is_absolute() or not there.is_file() else shown(there)


def from_here(finding: Finding, folder: Path) -> Finding:
    """The finding with each file of the script's folder named from the working directory."""

    def path_of(path: str) -> str:
        return path_from_here(path, folder)

    def at(location: Location) -> Location:
        return replace(location, path=path_of(location.path))

    return replace(
        finding,
        location=at(finding.location),
        related=tuple(replace(one, location=at(one.location)) for one in finding.related),
        stacks=tuple(
            replace(one, frames=tuple(replace(frame, path=path_of(frame.path)) for frame in one.frames))
            for one in finding.stacks
        ),
        fixes=tuple(
            replace(one, edits=tuple(replace(edit, path=path_of(edit.path)) for edit in one.edits))
            for one in finding.fixes
        ),
        consequences=tuple(replace(one, location=at(one.location)) for one in finding.consequences),
    )
