"""Exit codes, and the errors that a caller of the command line can act on."""

from __future__ import annotations

from typing import Final

CLEAN: Final = 0
FINDINGS: Final = 1
"""Findings at or above `--fail-on`."""

USAGE: Final = 2
"""Arguments, files or settings; nothing was run."""

OURS: Final = 3
"""We could not: nothing was judged."""

SCRIPT: Final = 4
"""The script did not end well; its findings are shown all the same."""

INTERRUPTED: Final = 130
"""Ctrl-C."""


class UsageError(Exception):
    """The command line cannot be followed as it was given; nothing was run. The message says what to do."""


class OutputLost(Exception):
    """What was asked to be written could not be: the message says which file, and why. Exit code 3."""
