"""`backprobe lsp`: what an editor starts; it speaks the Language Server Protocol on standard input and output."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exit_codes import CLEAN, UsageError
from backprobe.cli.project_settings import project


def add_lsp(subparsers: Subparsers) -> None:
    """Add `lsp`."""
    parser = subparsers.add_parser(
        "lsp",
        help="the language server that an editor starts",
        description="Speaks the Language Server Protocol on standard input and output. Editors start it; docs/how-to "
        "says how. BACKPROBE_URL names a service, BACKPROBE_API_KEY its key; without, programs run here.",
        allow_abbrev=False,
    )
    parser.add_argument("--stdio", action="store_true", help="accepted for editors that pass it; stdio is always used")
    parser.set_defaults(run=_lsp)


def _lsp(_args: argparse.Namespace) -> int:
    try:
        from backprobe.language_server.server import start
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("backprobe"):
            raise
        raise UsageError(f"`lsp` needs {error.name}: `pip install 'backprobe[lsp]'`") from None
    start(_settings_of, dict(os.environ))
    return CLEAN


def _settings_of(folder: Path) -> tuple[Mapping[str, Any], str]:
    try:
        return project(folder).settings, ""
    except UsageError as error:
        return {}, str(error)
