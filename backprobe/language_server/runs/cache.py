"""Results of local runs by content hash, so that a file shows again what was found when it was last run as it is.

They lie in the user's own folder, readable by nobody else, and hold the text that ran: it never leaves the machine.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

from backprobe.language_server.runs.results import Result, Unreadable, decode_result, encode_result

MOST_KEPT: Final = 200
"""Results; the one that was not used for longest goes first."""

MOST_BYTES: Final = 16 << 20
"""Of one result; a longer one is not kept."""


class Cache:
    """A folder of results.

    Args:
        home: Of Backprobe; the results lie in a folder of their own in it.
    """

    def __init__(self, home: Path) -> None:
        self.folder = home / "editor"

    def put(self, sha256: str, result: Result) -> None:
        """Keep a result; where the disk does not take it, it is not kept."""
        kept = encode_result(result)
        if len(kept) > MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".part")  # only its owner reads it
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(kept)
                Path(name).replace(self.folder / f"{sha256}.json")
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            self._forget_the_oldest()

    def get(self, sha256: str) -> Result | None:
        """Read the result of a program with this hash; None if there is none, or another version wrote it."""
        path = self.folder / f"{sha256}.json"
        try:
            found = decode_result(path.read_bytes())
        except (OSError, Unreadable):
            return None
        with contextlib.suppress(OSError):
            path.touch()
        return found

    def _forget_the_oldest(self) -> None:
        by_age = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in by_age[: max(0, len(by_age) - MOST_KEPT)]:
            path.unlink(missing_ok=True)
