"""What commands share: the type of what they are added to, of which argparse has no public name; a run's id."""

from __future__ import annotations

import argparse
import re
from typing import Any, Final, Protocol

RUN: Final = re.compile("run_[0-7][0-9A-HJKMNP-TV-Z]{25}")
"""The id of a run: a ULID behind its prefix."""


class Subparsers(Protocol):
    """What `ArgumentParser.add_subparsers` gives."""

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """Add the parser of one command."""
        ...
