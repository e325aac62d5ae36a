"""The command `backprobe`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from backprobe.cli.exit_codes import INTERRUPTED, OURS, OutputLost, UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what comes back is the exit code.

    Args:
        argv: The arguments behind `backprobe`; those of the process by default.
    """
    from backprobe.cli.parser import parse

    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and arguments[:1] in (["run"], ["watch"]):
        from backprobe.cli.larger_stack import with_a_grown_stack

        with_a_grown_stack()
    try:
        args = parse(arguments)
        return args.run(args)
    except UsageError as error:
        print(f"backprobe: {error}", file=sys.stderr)
        return 2
    except OutputLost as error:
        print(f"backprobe: {error}", file=sys.stderr)
        return OURS
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # whoever read our output has left (`| head`): say nothing more, not even when the interpreter flushes it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
