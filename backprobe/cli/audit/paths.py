"""Places in findings as a repository names its files: a run here names them from the script's own folder.

jobs/gpt.py, started as `backprobe run jobs/gpt.py`     gpt.py:3  ->  jobs/gpt.py:3
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from backprobe.cli.audit.programs import relative_path
from backprobe.rules import Finding, Location


def path_from_here(path: str, folder: Path) -> str:
    """Name a file of the script's folder from the working directory; return another's path as it is."""
    there = folder / path
    return path if Path(path).is_absolute() or not there.is_file() else relative_path(there)


def from_here(finding: Finding, folder: Path) -> Finding:
    """Name each file of the script's folder in a finding from the working directory."""

    def path_of(path: str) -> str:
        return path_from_here(path, folder)

    def move_location(location: Location) -> Location:
        return replace(location, path=path_of(location.path))

    return replace(
        finding,
        location=move_location(finding.location),
        related=tuple(replace(related, location=move_location(related.location)) for related in finding.related),
        stacks=tuple(
            replace(stack, frames=tuple(replace(frame, path=path_of(frame.path)) for frame in stack.frames))
            for stack in finding.stacks
        ),
        fixes=tuple(
            replace(fix, edits=tuple(replace(edit, path=path_of(edit.path)) for edit in fix.edits))
            for fix in finding.fixes
        ),
        consequences=tuple(
            replace(consequence, location=move_location(consequence.location)) for consequence in finding.consequences
        ),
    )
