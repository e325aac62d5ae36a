"""Arguments: our options stand before SCRIPT, everything behind it is the script's own, as with `python`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

import backprobe
from backprobe.cli.arguments import suggest_nearest
from backprobe.cli.audit import command
from backprobe.cli.commands import (
    agents,
    browser,
    comparison,
    configuration,
    explain,
    rules,
    run,
    service_runs,
    show,
    spool,
)
from backprobe.cli.commands.installed_commands import commands, register
from backprobe.cli.commands.language_server import add_lsp
from backprobe.cli.exit_codes import UsageError

BUILT_IN: Final = {
    "run": run.add_parser,
    "watch": run.add_watch,
    "show": show.add_parser,
    "explain": explain.add_explain,
    "rules": rules.add_rules,
    "submit": service_runs.add_submit,
    "runs": service_runs.add_runs,
    "compare": comparison.add_compare,
    "open": browser.add_open,
    "config": configuration.add_config,
    "mcp": agents.add_mcp,
    "lsp": add_lsp,
    "audit": command.add_audit,
    "spool": spool.add_spool,
}


class Parser(argparse.ArgumentParser):
    """Errors name the nearest thing that exists.

    Attributes:
        asked: The parser of the command that was asked for, once it was added.
        words: What it is parsing.
    """

    asked: argparse.ArgumentParser | None = None
    words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # type: ignore[override] - argparse has overloads
        """As argparse does; the words are kept for what an error says."""
        self.words = tuple(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments.

        Raises:
            UsageError: always.
        """
        asked = self.asked or self
        message = message.replace("required: SCRIPT, ARG", "required: SCRIPT")  # argparse's word for a remainder
        if "invalid choice" in message:  # of a value whose option was not known: name the option
            options = [word.split("=")[0] for word in self.words if word.startswith("--")]
            strange = next((word for word in options if word not in asked.format_help()), None)
            message = f"{message}{_nearest_value(message)}" if strange is None else f"unrecognized arguments: {strange}"
        unknown = re.search(r"unrecognized arguments: (.*)$", message)
        if unknown is not None:
            option = next((word for word in unknown[1].split() if word.startswith("-")), unknown[1].split()[0])
            known = re.findall(r"--[a-z][a-z-]*", asked.format_help())
            message = f"unknown option `{option}`" + suggest_nearest(option.split("=")[0], known)
        raise UsageError(f"{message}\n{asked.format_usage().rstrip()}")


def _nearest_value(message: str) -> str:
    """Suggest the nearest choice in an error like `invalid choice: 'deepest' (choose from state, grad, full, deep)`."""
    told = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message)
    return "" if told is None else suggest_nearest(told[1], [choice.strip(" '") for choice in told[2].split(",")])


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of one command; `run` of the result executes it.

    Raises:
        UsageError: they cannot be followed.
        SystemExit: `--help` or `--version` was asked for, and printed.
    """
    asked = next((word for word in argv if not word.startswith("-")), None)
    plug_ins = {} if asked in BUILT_IN or "--version" in argv[:1] else commands()
    parser = _parser(plug_ins)
    parser.add_argument("--version", action="version", version=f"backprobe {backprobe.__version__}")
    if asked is not None and asked not in BUILT_IN and asked not in plug_ins:
        hint = suggest_nearest(asked, [*BUILT_IN, *plug_ins])
        raise UsageError(f"there is no command `{asked}`{hint}\n{parser.format_usage().rstrip()}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)
    for name, add in BUILT_IN.items():
        if asked in (None, name):
            add(subparsers)
    if asked in plug_ins:
        register(plug_ins[asked], subparsers)
    parser.asked = subparsers.choices.get(asked or "")
    return parser.parse_args(service_runs.with_seconds(argv) if asked == "submit" else argv)


def _parser(plug_ins: Iterable[str]) -> Parser:
    others = ", ".join(sorted(plug_ins))
    return Parser(
        prog="backprobe",
        usage="backprobe [-h] [--version] COMMAND ...",
        description="Why is this gradient None, this graph alive, this loss NaN; which line to change.",
        epilog=f"Commands of the service (`backprobe COMMAND --help` tells more): {others}" if others else None,
        allow_abbrev=False,
    )
