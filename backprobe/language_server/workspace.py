"""The folders that an editor has open: which one a file lies in, what its project says, and how a save runs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pygls.uris import to_fs_path

from backprobe.language_server.settings import Entry, entry_of

Project = Callable[[Path], tuple[Mapping[str, Any], str]]
"""`[tool.backprobe]` that holds in a folder, and what is wrong with it; "": nothing."""


class Workspace:
    """Open folders.

    Args:
        folders: Absolute. project: Reads `[tool.backprobe]`. trouble: Called with what is wrong in it.
    """

    def __init__(self, folders: Iterable[Path], project: Project, trouble: Callable[[str], None]) -> None:
        self._folders, self._project, self._trouble = tuple(folders), project, trouble

    def change(self, *, added: Iterable[Path], removed: Iterable[Path]) -> None:
        """Folders were opened and closed."""
        gone = frozenset(removed)
        kept = (folder for folder in self._folders if folder not in gone)
        self._folders = tuple(dict.fromkeys((*kept, *added)))

    def folder_of(self, path: str) -> Path | None:
        """Find the innermost open folder that a file lies in; None if there is none."""
        around = [folder for folder in self._folders if Path(path).is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=None)

    def project_of(self, folder: Path) -> Mapping[str, Any]:
        """Read the settings of a folder's project, which must be trusted."""
        told, wrong = self._project(folder)
        if wrong:
            self._trouble(wrong)
        return told

    def entry_of(self, path: str, entries: Iterable[Entry], *, trusted: bool) -> Entry | None:
        """How a save runs a file, by the editor's entries and those of its project; None: it does not."""
        folder = self.folder_of(path) or Path(path).parent
        patterns = self.project_of(folder).get("entries", ()) if trusted else ()
        return entry_of(path, folder, (*entries, *(Entry(program=pattern) for pattern in patterns)))


def path_of(uri: str) -> str | None:
    """Return the absolute path of a document that is a file; None for a notebook's cell or an unsaved document."""
    return to_fs_path(uri) if uri.startswith("file:") else None


def folders_of(uris: Iterable[str]) -> tuple[Path, ...]:
    """Return the absolute paths of folders that are on this machine."""
    paths = (path_of(uri) for uri in uris)
    return tuple(Path(os.path.normpath(path)) for path in paths if path is not None)
