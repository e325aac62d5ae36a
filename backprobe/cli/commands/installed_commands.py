"""Commands that other parts add, by the entry-point group `backprobe.commands`; imported only when they are used."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exit_codes import UsageError

GROUP: Final = "backprobe.commands"


def commands() -> dict[str, EntryPoint]:
    """List the plug-in commands that are installed, by name, without importing any."""
    return {point.name: point for point in entry_points(group=GROUP)}


def register(point: EntryPoint, subparsers: Subparsers) -> None:
    """Let a plug-in add its parser.

    Raises:
        UsageError: something that it imports is not installed.
    """
    try:
        add = point.load()
    except ModuleNotFoundError as error:
        raise UsageError(
            f"`{point.name}` needs the module {error.name!r}, which is not installed. "
            "Install it with `pip install 'backprobe[all]'`."
        ) from error
    add(subparsers)
