"""Is this a program? The checks that cost nothing but reading it; it is never run in this process.

`compile` is the whole of Python's own opinion: it also refuses `return` outside a function, which a parser lets pass.
It is asked about 150,000 words of a program: 1 MiB of `x;` took 685 MiB and 1.4 s, in which no other thread ran.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.syntax import MOST_WORDS, words
from service.errors import Place, Problem
from service.printable import is_printable

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_FILES: Final = 64
MOST_CHARACTERS: Final = 1 << 20
"""Of one file: what the record keeps of a source (backprobe/record/fields.py, SourceText)."""

SOURCE_NAME: Final = "snippet.py"
"""What a snippet that was sent as `source` is called."""

_one_at_a_time = threading.Lock()
"""`catch_warnings` is a property of the process, and no two compilations shall take memory at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A program as it was submitted: texts by path, in the order sent, and the one to start with.

    Attributes:
        pointers: Where each file's text stands in the request.
    """

    files: Mapping[str, str]
    entry: str
    pointers: Mapping[str, str]

    def check(self) -> None:
        """Refuse what could not run.

        Raises:
            Problem: `too-large`, `invalid-request` (an empty entry), or `syntax-error` with the line.
        """
        for path, text in self.files.items():
            if len(text) > MOST_CHARACTERS:
                detail = f"{path} has {len(text):,} characters; {MOST_CHARACTERS:,} is the most."
                place = Place(pointer=self.pointers[path], code="too-large", detail=detail)
                raise Problem("too-large", detail, places=(place,))
        if not self.files[self.entry].strip("\ufeff \t\r\n\f"):
            detail = f"{self.entry} is empty: there is nothing to run."
            place = Place(pointer=self.pointers[self.entry], code="empty-source", detail=detail)
            raise Problem("invalid-request", detail, places=(place,))
        left = MOST_WORDS
        for path, text in self.files.items():
            if not path.endswith(".py") and path != self.entry and "\0" not in text:
                continue
            counted = words(text, left + 1)
            if counted > left and "\0" not in text:
                continue  # the run itself will say what Python thinks of it
            left -= min(counted, left)
            self._check_syntax(path, text)

    def _check_syntax(self, path: str, text: str) -> None:
        line: int | None = None
        try:
            with _one_at_a_time, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an invalid escape is the program's business, not our log's
                compile(text.removeprefix("\ufeff"), path, "exec", dont_inherit=True)
        except SyntaxError as error:
            said, line = error.msg, error.lineno
        except (RecursionError, MemoryError):  # what CPython's compiler answers to nesting beyond its stack
            said = "nested more deeply than Python can compile"
        except (ValueError, OverflowError) as error:
            said = str(error)[:200]
        else:
            return
        where = f"{path}, line {line}" if line else path
        place = Place(pointer=self.pointers[path], code="syntax-error", detail=said, line=line)
        raise Problem("syntax-error", f"{where}: {said}", places=(place,))


def path_fault(path: str) -> str | None:
    """Why this is no path of a file in a snippet; None if it is one: relative, POSIX, printable, without `..`."""
    parts = path.split("/")
    if not path or len(path) > 200:
        return "A path has 1 to 200 characters."
    if path.startswith("/") or "\\" in path or ":" in parts[0]:
        return "A path is relative, with forward slashes."
    if any(part in {"", ".", ".."} for part in parts):
        return "A path has no empty part, no `.` and no `..`."
    if not is_printable(path) or any(part != part.strip() for part in parts):
        return "A path has printable characters only, and no blank at either end of a part."
    return None
