"""Faulty and correct programs shown to tools, and what they find: `make benchmark`.

usage: python -m bench.diagnosis [--sets second,round5] [--tools plain_torch,detect_anomaly,backprobe_rules,my.module]
                                 [--folder FOLDER ...] [--write]

A set is a folder of `tests/corpus`, or one of yours in the same format; a tool is a file of `bench/diagnosis/tools`,
or a module of yours with `tool()`. `--write` puts the tables into docs/benchmark.md.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from bench.diagnosis.measure import Measured, measured, table
from bench.diagnosis.tool_report import Tool
from tests.corpus.cases import SETS, Corpus, load_corpus, load_set

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "benchmark.md"
MARKS: Final = ("<!-- benchmark: begin -->", "<!-- benchmark: end -->")
TOOLS: Final = ("plain_torch", "detect_anomaly", "backprobe_rules")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(prog="python -m bench.diagnosis", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", default=",".join(SETS), help=f"of {', '.join(SETS)}; empty: none")
    parser.add_argument("--tools", default=",".join(TOOLS), help="files of bench/diagnosis/tools, or modules of yours")
    parser.add_argument("--folder", type=Path, action="append", default=[], help="a set of yours; may be repeated")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmark.md")
    asked = parser.parse_args(arguments)
    try:
        corpora = _sets(asked.sets, asked.folder)
        tools = [_tool(name) for name in asked.tools.split(",")]
    except ValueError as error:
        parser.error(str(error))
    lines: list[str] = []
    with contextlib.ExitStack() as ends:
        for tool in tools:
            ends.callback(tool.close)
        for corpus in corpora:
            results = [measured(tool, corpus, _Progress()) for tool in tools]
            lines += _format_results(corpus, results)
    if asked.write:
        head, _, rest = DOCUMENT.read_text().partition(MARKS[0])
        _old, _, tail = rest.partition(MARKS[1])
        DOCUMENT.write_text(f"{head}{MARKS[0]}\n\n" + "\n".join(lines).rstrip() + f"\n\n{MARKS[1]}{tail}")
    return 0


def _format_results(corpus: Corpus, results: Sequence[Measured]) -> list[str]:
    lines = [*table(corpus, results), ""]
    print("\n".join(lines), flush=True)
    return lines


def _sets(names: str, folders: Sequence[Path]) -> list[Corpus]:
    chosen = [name for name in names.split(",") if name]
    unknown = [name for name in chosen if name not in SETS]
    if unknown:
        raise ValueError(f"there is no set {unknown[0]!r}: {', '.join(SETS)}; --folder takes one of yours")
    corpora = [load_set(name) for name in chosen]
    for folder in folders:
        corpora.append(load_corpus(folder))
        if not corpora[-1].cases:
            raise ValueError(f"{folder} has no case files (*.py)")
    if not corpora:
        raise ValueError("no set is named")
    return corpora


def _tool(name: str) -> Tool:
    where = name if "." in name else f"bench.diagnosis.tools.{name}"
    try:
        return import_module(where).tool()
    except ModuleNotFoundError as error:
        raise ValueError(f"no tool {name!r} ({error}); here are {', '.join(TOOLS)}") from None


class _Progress:
    """On a terminal each case, else a line now and then."""

    def __init__(self) -> None:
        self._told_at = time.monotonic()

    def __call__(self, what: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{what}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._told_at > 30:
            self._told_at = time.monotonic()
            print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
