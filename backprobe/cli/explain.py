"""`backprobe explain RULE` and `backprobe rules`: the manuals, read from the rules' own docstrings."""

from __future__ import annotations

import argparse
import json

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exits import CLEAN, UsageError


def add_explain(subparsers: Subparsers) -> None:
    """Add `explain`."""
    parser = subparsers.add_parser("explain", help="the manual of a rule", allow_abbrev=False)
    parser.add_argument("rule", metavar="RULE", help="its name or code: non-leaf-grad-read, BP101")
    parser.set_defaults(run=_explain)


def add_rules(subparsers: Subparsers) -> None:
    """Add `rules`."""
    parser = subparsers.add_parser("rules", help="the list of rules", allow_abbrev=False)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.set_defaults(run=_rules)


def _explain(args: argparse.Namespace) -> int:
    from backprobe.rules.manual import UnknownRule, manual
    from backprobe.show.manual_text import render

    try:
        print(render(manual(args.rule)))
    except UnknownRule as error:
        raise UsageError(str(error)) from None
    return CLEAN


def _rules(args: argparse.Namespace) -> int:
    from backprobe.rules.manual import every_rule, manual

    manuals = [manual(rule.name) for rule in every_rule()]
    if args.format == "json":
        rows = [
            {
                "code": one.rule.code,
                "name": one.rule.name,
                "level": one.rule.severity,
                "confidence": one.rule.confidence,
                "fix": one.rule.fix,
                "since": one.rule.since,
                "headline": one.headline,
            }
            for one in manuals
        ]
        print(json.dumps(rows, indent=2))
        return CLEAN
    width = max(len(one.rule.name) for one in manuals)
    for one in manuals:
        print(f"{one.rule.code}  {one.rule.name:{width}}  {one.rule.severity:7}  {one.headline}")
    return CLEAN
