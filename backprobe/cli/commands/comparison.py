"""`backprobe compare A B`: what differs between two runs of the service, or between two record files.

The tensors of a loop, which change alike in each round, are one row with their count.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from backprobe.cli.arguments import RUN, Subparsers
from backprobe.cli.commands.service_runs import add_address, ask, finding_line
from backprobe.cli.commands.show import read_record
from backprobe.cli.exit_codes import CLEAN, UsageError
from backprobe.show.plain_text import cut, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from backprobe.client import Client

_MOST_ROWS: Final = 40
MOST_LISTED: Final = 500
"""Items of each list of two compared record files, as the service has it."""


def add_compare(subparsers: Subparsers) -> None:
    """Add `compare`."""
    parser = subparsers.add_parser("compare", help="what differs between two runs", allow_abbrev=False)
    add_address(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("a", metavar="A", help="the run before, by its id; or a record file")
    parser.add_argument("b", metavar="B", help="the run after, likewise")
    parser.set_defaults(run=_compare)


def check_run(name: str) -> str:
    """Check the id of a run, and return it.

    Raises:
        UsageError: it cannot be one.
    """
    if RUN.fullmatch(name) is None:
        raise UsageError(
            f"`{name}` is not the id of a run: one is `run_` and 26 letters and digits; `backprobe runs` lists them"
        )
    return name


def _compare(args: argparse.Namespace) -> int:
    files = [Path(name) for name in (args.a, args.b)]
    if all(path.exists() for path in files):
        return _print_comparison(_compared_files(*files), args.format)
    a, b = check_run(args.a), check_run(args.b)
    return ask(args, lambda client: _compare_runs(client, a, b, args.format))


def _compare_runs(client: Client, a: str, b: str, form: str) -> int:
    return _print_comparison(client.compare(a, b), form)


def _compared_files(*paths: Path) -> dict[str, Any]:
    """Compare two record files, in the words in which the service compares two runs."""
    from backprobe.rules import judge
    from backprobe.rules.framework.finding import finding_json
    from backprobe.show.operation_comparison import first_difference, placed_operations
    from backprobe.show.run_comparison import (
        align,
        diffs,
        fingerprints_as_called,
        lines_of,
        placed_tensors,
        same_files,
        tensors_json,
    )  # fmt: skip

    records = [read_record(path) for path in paths]
    texts = [{row.path: row.text for row in record.sources} for record in records]
    called = same_files(*map(lines_of, texts))
    judged = [judge(record).findings for record in records]
    names = [finding.fingerprint for finding in judged[0]], fingerprints_as_called(judged[1], called)
    found = [dict(zip(name, map(finding_json, some), strict=True)) for name, some in zip(names, judged, strict=True)]
    new, fixed = [row for name, row in found[1].items() if name not in found[0]], found[0].keys() - found[1].keys()
    a, b = (placed_tensors(record) for record in records)
    both = align(a, b, *(lines_of(text) for text in texts))
    return {
        "a": str(paths[0]),
        "b": str(paths[1]),
        "findings": {
            "new": len(new), "fixed": len(fixed), "same": len(found[0]) - len(fixed), "in_b": new,
            "in_a": [row for name, row in found[0].items() if name in fixed],
        },
        "tensors": tensors_json(both, MOST_LISTED),
        "operations": {
            "in_a": len(records[0].operations),
            "in_b": len(records[1].operations),
            "compared": max(len(record.operations) for record in records),
            "first": first_difference(*map(placed_operations, records)),
        },
        "source": diffs(*texts),
    }  # fmt: skip


def _print_comparison(told: Mapping[str, Any], form: str) -> int:
    if form == "json":
        print(json.dumps(told, indent=2))
        return CLEAN
    findings, tensors = told["findings"], told["tensors"]
    print(f"findings: {findings['new']} new, {findings['fixed']} fixed, {findings['same']} as before")
    for sign, rows in (("+", findings["in_b"]), ("-", findings["in_a"])):
        for row in rows:
            print(f"  {sign} {finding_line(row)}")
    alone = f"{tensors['only_a']} only in A, {tensors['only_b']} only in B"
    print(f"tensors: {tensors['aligned']} aligned, {tensors['changed']} changed, {alone}")
    for line in changes(tensors["changes"], tensors["changed"]):
        print(f"  {line}")
    print(_operations_line(told["operations"]))
    for file in told["source"]:
        text = file["diff"] if file["diff"] is not None else f"{file['path']}: too long for a diff"
        print(plain(text, keep_newlines=True))
    return CLEAN


def _operations_line(told: Mapping[str, Any]) -> str:
    """`operations: 120 in A, 121 in B; the first that differs: ...`."""
    counts, first = f"operations: {told['in_a']} in A, {told['in_b']} in B", told["first"]
    if first is None:
        some = "all" if told["compared"] == max(told["in_a"], told["in_b"]) else f"the first {told['compared']:,}"
        return f"{counts}, {some} of one structure"
    return f"{counts}; the first that differs: {_operation(first['a'])} in A, {_operation(first['b'])} in B"


def _operation(told: Mapping[str, Any] | None) -> str:
    if told is None:
        return "none"
    from backprobe.show.operation_comparison import operation_text

    return f"line {told['line']} of {plain(told['path'])}, {operation_text(told)}"


def changes(listed: Iterable[Mapping[str, Any]], count: int) -> Iterator[str]:
    """Lines of what changed; those of one place, name and change are one line, and the last says what is left out."""
    alike: dict[str, int] = {}
    for change in listed:
        line = _change(change)
        alike[line] = alike.get(line, 0) + 1
    for line, times in list(alike.items())[:_MOST_ROWS]:
        yield line if times == 1 else f"{line}  ({times} times)"
    left_out = count - sum(list(alike.values())[:_MOST_ROWS])
    if left_out > 0:
        yield f"... and {left_out:,} more: `--format json` has the first 500"


def _change(change: Mapping[str, Any]) -> str:
    a, b = change["a"], change["b"]
    name = cut(plain(b["fqn"] or b["name"] or f"#{b['tensor']}"), 60)
    facts = ", ".join(f"{fact} {_fact(a[fact])} -> {_fact(b[fact])}" for fact in change["changed"])
    return f"{plain(str(b['path']))}:{b['line']} {name}: {facts}"


def _fact(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else plain(str(value))
