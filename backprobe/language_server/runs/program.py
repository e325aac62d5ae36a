"""The files of a program: the one that is run, and those of the workspace that it imports, as they lie on the disk.

Imports are read, never followed by running anything: `import a.b`, `from a import b` and `from . import b` of files
below the entry's folder, the workspace or its `src`. What a program imports in other ways is not among its files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from backprobe.imported_files import imported_files, module_roots
from backprobe.snippet_digest import snippet_digest

MOST_BYTES: Final = 1 << 20
"""Of one file, and of all together; a service takes no more."""


class NotAProgram(Exception):
    """The file cannot be run. The message says why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run.

    Attributes:
        root: The folder that paths are relative to, absolute.
        entry: The file that is started. files: text by path, the entry's among them. Paths are relative and POSIX.
        arguments: Of the program. environment: variables that it has beside those of the editor, in a local run.
    """

    root: Path
    entry: str
    files: dict[str, str]
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def sha256(self) -> str:
        """Its content hash, in hex, as the service has it."""
        bodies = {path: text.encode() for path, text in self.files.items()}
        return snippet_digest(self.entry, bodies).hex()

    def absolute(self, path: str) -> str:
        """Return the absolute path of one of its files."""
        return str(self.root / path)


def read_program(entry: Path, workspace: Path | None) -> Program:
    """Read the program that a file starts.

    Args:
        entry: Absolute. workspace: The folder that is open; a file outside it is a separate program.

    Raises:
        NotAProgram: the file cannot be read, is no UTF-8, or is too long.
    """
    root = workspace if workspace is not None and entry.is_relative_to(workspace) else entry.parent
    name = entry.relative_to(root).as_posix()
    try:
        raw = entry.read_bytes()
        text = raw.decode()
    except OSError as error:
        raise NotAProgram(f"`{name}` cannot be read ({error.strerror}): save it first") from None
    except UnicodeDecodeError:
        raise NotAProgram(f"`{name}` is no UTF-8: save it as UTF-8") from None
    if len(raw) > MOST_BYTES:
        raise NotAProgram(f"`{name}` has {len(raw):,} bytes, and a program has at most {MOST_BYTES:,}")
    files, left = {name: text}, MOST_BYTES - len(raw)
    for path in imported_files(entry, module_roots(entry, root))[1:]:
        found = _text_of(path, left) if path.resolve().is_relative_to(root.resolve()) else None
        if found is not None and path.is_relative_to(root):
            files[path.relative_to(root).as_posix()] = found
            left -= len(found.encode())
    return Program(root=root, entry=name, files=files)


def _text_of(path: Path, most: int) -> str | None:
    try:
        raw = path.read_bytes()
        return raw.decode() if len(raw) <= most else None
    except (OSError, UnicodeDecodeError):
        return None
