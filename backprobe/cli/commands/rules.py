"""`backprobe rules`: the list; `rules check RECORD` judges a stored record, `rules new NAME` begins a plug-in."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from backprobe.cli.arguments import Subparsers
from backprobe.cli.commands import show
from backprobe.cli.exit_codes import CLEAN


def add_rules(subparsers: Subparsers) -> None:
    """Add `rules` and what stands under it."""
    parser = subparsers.add_parser(
        "rules",
        help="the list of rules; `rules check RECORD`; `rules new NAME`",
        usage="backprobe rules [--format text|json] [check RECORD | new NAME]",
        description="Lists the rules, with those of plug-ins that are installed.",
        allow_abbrev=False,
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run=_rules)
    under = parser.add_subparsers(dest="under", metavar="COMMAND", prog="backprobe rules")
    show.add_check(under)
    _add_new(under)


def _add_new(under: Subparsers) -> None:
    new = under.add_parser("new", help="begin a plug-in: a folder with one rule, its manual and its tests")
    new.add_argument("name", metavar="NAME", help="the rule's name, kebab case: it names what is wrong")
    new.add_argument("--prefix", metavar="AB", required=True, help="of its code: 2 to 4 capitals of your own, not BP")
    new.set_defaults(run=_new)


def _new(args: argparse.Namespace) -> int:
    from backprobe.cli.commands.plugin_template import begin

    folder = begin(Path.cwd(), args.name, args.prefix)
    print(f"{folder.name}/ holds the rule `{args.name}`, its manual and its tests. Next:")
    print(f"  cd {folder.name} && pip install -e . && python -m pytest")
    return CLEAN


def _rules(args: argparse.Namespace) -> int:
    from backprobe.rules.framework.manual import headlines
    from backprobe.rules.framework.plugins import installed

    for plugin in installed().left_out:
        print(f"backprobe: the plug-in `{plugin.name}` is left out ({plugin.error}): {plugin.why}", file=sys.stderr)
    found = headlines()
    if args.format == "json":
        rows = [
            {
                "code": rule.code,
                "name": rule.name,
                "level": rule.severity,
                "confidence": rule.confidence,
                "fix": rule.fix,
                "since": rule.since,
                "headline": headline,
                "thresholds": dict(rule.thresholds),
            }
            for rule, headline in found
        ]
        print(json.dumps(rows, indent=2))
        return CLEAN
    width = max(len(rule.name) for rule, _ in found)
    for rule, headline in found:
        print(f"{rule.code}  {rule.name:{width}}  {rule.severity:7}  {headline}")
    return CLEAN
