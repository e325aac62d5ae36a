"""What commands are added to: argparse has the type, but no public name for it."""

from __future__ import annotations

import argparse
from typing import Any, Protocol


class Subparsers(Protocol):
    """What `ArgumentParser.add_subparsers` gives."""

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """Add the parser of one command."""
        ...
