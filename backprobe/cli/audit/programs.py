"""What an audit is of: programs that are run, records that are judged, runs of the service."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from backprobe.cli.audit.policy_file import PolicyFile, RunSettings
from backprobe.cli.exit_codes import UsageError

RUN: Final = re.compile("run_[0-7][0-9A-HJKMNP-TV-Z]{25}")
RECORD: Final = ".bprec"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One item.

    Attributes:
        name: The audit's only one. path: of the script or record; None: `run` is there already.
        run: Public id of a run of the service.
    """

    name: str
    path: Path | None = None
    run: str | None = None
    settings: RunSettings = field(default_factory=RunSettings)

    @property
    def is_record(self) -> bool:
        """It was run before, and its record is judged."""
        return self.path is not None and self.path.suffix == RECORD


def programs(paths: Sequence[str], policy: PolicyFile) -> tuple[Program, ...]:
    """List the programs to audit, in order, each once.

    A folder: its records; without any, its scripts (`*.py`, folders below too). `@FILE`: one of these a line. Without
    paths: what the policy names.

    Raises:
        UsageError: there is no such file, or there is nothing to audit.
    """
    found = [program for text in paths for program in _expand_name(text)] if paths else list(_of_policy(policy))
    if not found:
        where = "the policy's `entries` and `run` name no file" if not paths else "there is no script and no record"
        raise UsageError(f"nothing to audit: {where}")
    items: dict[str, Program] = {}
    for fromkey in dict.fromkeys(found):
        for item in _list_starts(fromkey, policy):
            if item.name in items:
                raise UsageError(f"two items are called `{item.name}`: give each a `name` in the policy")
            items[item.name] = item
    return tuple(items.values())


def _expand_name(text: str) -> Iterator[str | Path]:
    if RUN.fullmatch(text):
        yield text
        return
    if text.startswith("@"):
        yield from _read_list(Path(text[1:]))
        return
    path = Path(text)
    if path.is_dir():
        records = sorted(path.rglob(f"*{RECORD}"))
        yield from records or (file for file in sorted(path.rglob("*.py")) if not _is_hidden(file.relative_to(path)))
        return
    if not path.is_file():
        raise UsageError(f"there is no file or folder `{text}`")
    yield path


def _read_list(path: Path) -> Iterator[str | Path]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the list `{path}`: {error}") from None
    for line in lines:
        if line.strip() and not line.lstrip().startswith(("#", "@")):
            yield from _expand_name(line.strip())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "__")) for part in path.parts) or path.name == "setup.py"


def _of_policy(policy: PolicyFile) -> Iterator[Path]:
    for pattern in policy.entries:
        matching = [path for path in sorted(policy.folder.glob(pattern)) if path.is_file()]
        if not matching:
            raise UsageError(
                f"nothing to audit: no file is `{pattern}` of the policy's `entries`, seen from {policy.folder}"
            )
        yield from matching
    for script in policy.runs:
        path = policy.folder / script
        if not path.is_file():
            raise UsageError(f'`run."{script}"` of the policy: there is no file `{path}`')
        yield path


def _list_starts(named: str | Path, policy: PolicyFile) -> Iterator[Program]:
    """Yield the items of one path: as many as the policy has starts of it."""
    if isinstance(named, str):
        yield Program(name=named, run=named)
        return
    path = named.absolute()
    name = relative_path(path)
    inside = path.relative_to(policy.folder).as_posix() if path.is_relative_to(policy.folder) else ""
    several = policy.runs.get(inside, (RunSettings(),))
    for at, settings in enumerate(several, 1):
        numbered = name if len(several) == 1 else f"{name} #{at}"
        yield Program(name=settings.name or numbered, path=path, settings=settings)


def relative_path(path: Path) -> str:
    """Name a path from the working directory if it lies below that, as annotations and SARIF name files."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()
