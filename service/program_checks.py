"""Is this a program? The checks that cost nothing but reading it; it is neither compiled nor run in this process.

`compile` is the whole of Python's own opinion: it also refuses `return` outside a function, which a parser lets pass.
A process with limits is asked for it (`service.process.syntax_checker`), about 150,000 words of a program at most.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NoReturn

from backprobe.rules.analysis.parse_bounds import MOST_WORDS, count_words
from service.problems.errors import Place, Problem
from service.process.syntax_checker import CHECKERS, SyntaxChecker
from service.web.printable_text import is_printable
from store.runs.snippets import find_entry_file

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_FILES: Final = 64
MOST_CHARACTERS: Final = 1 << 20
"""Of one file: what the record keeps of a source (backprobe/record/rows/fields.py, SourceText)."""

MOST_FOLDERS: Final = 128
"""Of all files: the private folder of a run has room for 256 files and folders at the least."""

PAGE_BYTES: Final = 4096
"""What a file takes of a private folder is counted in these."""

LONGEST_PART: Final = 255
"""Bytes of a name between two slashes, as Linux has it."""

SOURCE_NAME: Final = "snippet.py"
"""What a snippet is called that was sent as `source` without a name."""

_NO_PART: Final = re.compile(r"[^\w.-]+")
_LONGEST_CALLED: Final = 48
"""Characters of a name that are kept where it cannot be a path; as bytes they fit the name of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A program as it was submitted: texts by path, in the order sent, and the one to start with, or the module.

    Attributes:
        named: Whoever sent it named its file.
        pointers: JSON pointers to each file's text in the request.
    """

    files: Mapping[str, str]
    entry: str
    pointers: Mapping[str, str]
    named: bool = True

    def check(self, tenant_id: int) -> None:
        """Refuse what could not run.

        Args:
            tenant_id: Whose program it is: a tenant has one program compiled at a time.

        Raises:
            Problem: `too-large`, `invalid-request` (an empty entry, paths that exclude each other), or
                `syntax-error` with the line.
        """
        self._check_places()
        for path, text in self.files.items():
            if len(text) > MOST_CHARACTERS:
                detail = f"{path} has {len(text):,} characters; {MOST_CHARACTERS:,} is the most."
                place = Place(pointer=self.pointers[path], code="too-large", detail=detail)
                raise Problem("too-large", detail, places=(place,))
        first = find_entry_file(self.files, self.entry) or self.entry
        if not self.files[first].strip("\ufeff \t\r\n\f"):
            detail = f"{first} is empty: there is nothing to run."
            place = Place(pointer=self.pointers[first], code="empty-source", detail=detail)
            raise Problem("invalid-request", detail, places=(place,))
        with CHECKERS.lend(tenant_id) as checker:
            self._check_files(checker, first)

    def _check_files(self, checker: SyntaxChecker, first: str) -> None:
        left = MOST_WORDS
        for path, text in self.files.items():
            if not path.endswith(".py") and path != first and "\0" not in text:
                continue
            counted = count_words(text, left + 1)
            if counted > left and "\0" not in text:
                continue  # the run itself will say what Python thinks of it
            left -= min(counted, left)
            self._check_syntax(checker, path, text)

    def check_room(self, disk_bytes: int) -> None:
        """Refuse files that do not fit into the private folder of a run; 0: it has none, and they are in memory only.

        Raises:
            Problem: `invalid-request`.
        """
        pages = sum(-(-len(text.encode("utf-8", "surrogatepass")) // PAGE_BYTES) for text in self.files.values())
        if len(self.files) > 1 and 0 < disk_bytes < pages * PAGE_BYTES:
            detail = (
                f"The files take {pages * PAGE_BYTES:,} bytes of the run's private folder, in which they lie;"
                f" `limits.disk_bytes` is {disk_bytes:,}."
            )
            place = Place(pointer="#/limits/disk_bytes", code="no-room", detail=detail)
            raise Problem("invalid-request", detail, places=(place,))

    def _check_places(self) -> None:
        """Refuse files that cannot lie in one folder, as a run finds them."""
        folders: set[str] = set()
        alike: dict[str, str] = {}
        for path in self.files:
            folders.update(str(parent) for parent in PurePosixPath(path).parents)
            other = alike.setdefault(unicodedata.normalize("NFC", path), path)
            if other != path:
                self._refuse_place(path, f"{path} and another path look alike: they differ in their Unicode form only.")
        for path in sorted(folders & self.files.keys()):
            self._refuse_place(path, f"`{path}` is a file and a folder.")
        if len(folders) > MOST_FOLDERS:
            self._refuse_place(next(iter(self.files)), f"The files lie in more than {MOST_FOLDERS} folders.")

    def _refuse_place(self, path: str, detail: str) -> NoReturn:
        pointer = self.pointers[path].removesuffix("/text")
        raise Problem("invalid-request", detail, places=(Place(pointer=pointer, code="bad-path", detail=detail),))

    def _check_syntax(self, checker: SyntaxChecker, path: str, text: str) -> None:
        fault = checker.find_fault(path, text.removeprefix("\ufeff"))
        if fault is None:
            return
        where = f"{path}, line {fault.line}" if fault.line else path
        place = Place(pointer=self.pointers[path], code="syntax-error", detail=fault.message, line=fault.line)
        raise Problem("syntax-error", f"{where}: {fault.message}", places=(place,))


def file_name(called: str, source: str) -> str:
    """Return a path for a program that the client named: the name itself if it is a valid path.

    A name with characters that no path has, or of a module that the program imports, gets a digest of the name as
    suffix, so that the path differs from those of similar names.
    """
    path = called if called.endswith(".py") else f"{called}.py"
    if path_fault(path) is None and not _imports(source, path):
        return path
    parts = [_NO_PART.sub("_", part).strip("_.") for part in called.removesuffix(".py").split("/")]
    cut = "/".join(part for part in parts if part)[:_LONGEST_CALLED].strip("/_.") or "program"
    return f"{cut}-{hashlib.sha256(called.encode()).hexdigest()[:8]}.py"


def _imports(source: str, path: str) -> bool:
    """Return whether the program would import a file of this name in the place of the module that it means."""
    module = PurePosixPath(path).stem
    return re.search(rf"^[ \t]*(?:import|from)[ \t].*\b{re.escape(module)}\b", source, re.MULTILINE) is not None


def path_fault(path: str) -> str | None:
    """Why this is no path of a file in a snippet; None if it is one: relative, POSIX, printable, without `..`."""
    parts = path.split("/")
    if not path or len(path) > 200:
        return "A path has 1 to 200 characters."
    if path.startswith("/") or "\\" in path or ":" in parts[0]:
        return "A path is relative, with forward slashes."
    if any(part in {"", ".", ".."} for part in parts):
        return "A path has no empty part, no `.` and no `..`."
    if any(len(part.encode("utf-8", "surrogatepass")) > LONGEST_PART for part in parts):
        return f"A name in a path has at most {LONGEST_PART} bytes."
    if not is_printable(path) or any(part != part.strip() for part in parts):
        return "A path has printable characters only, and no blank at either end of a part."
    return None
