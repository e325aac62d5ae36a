"""The hint where an option of Backprobe follows the script's name, which is then the script's.

`backprobe run train.py --tier grad`: `--tier grad` is in the script's `sys.argv`, and no option of Backprobe.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import takewhile


def find_misplaced_option(
    arguments: Iterable[str], parser: argparse.ArgumentParser, sources: Iterable[str]
) -> str | None:
    """Return the first of the script's arguments that is an option of Backprobe and not of the script; else None.

    Args:
        arguments: Of the script; what stands behind `--` is meant for it.
        parser: Of the command.
        sources: The texts of the program's files. One with the option's name in it reads it itself.
    """
    ours = {option for action in parser._actions for option in action.option_strings if len(option) > 2}  # noqa: SLF001 - argparse has no public list
    texts = list(sources)
    for word in takewhile(lambda argument: argument != "--", arguments):
        option = word.partition("=")[0]
        name = option.lstrip("-")
        if option in ours - {"--help"} and not any(name in text or name.replace("-", "_") in text for text in texts):
            return option
    return None


def hint(option: str, command: str) -> str:
    """Say that an option stands behind the script."""
    return (
        f"backprobe: `{option}` stands behind the script, so the script got it; options of Backprobe stand before it: "
        f"`backprobe {command} {option} ... SCRIPT`"
    )
