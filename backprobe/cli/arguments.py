"""What commands share: the type of what they are added to, of which argparse has no public name; a run's id; hints."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable
from typing import Any, Final, Protocol

RUN: Final = re.compile("run_[0-7][0-9A-HJKMNP-TV-Z]{25}")
"""The id of a run: a ULID behind its prefix."""


class Subparsers(Protocol):
    """What `ArgumentParser.add_subparsers` gives."""

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """Add the parser of one command."""
        ...


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` with the known word that is nearest; empty if none is near."""
    near = difflib.get_close_matches(word, sorted(set(known)), n=1, cutoff=0.6)
    return f"; did you mean `{near[0]}`?" if near else ""
