"""Where a report goes, and in which form: format, colour, width, file."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from backprobe.cli.exit_codes import CLEAN, FINDINGS, OutputLost, UsageError
from backprobe.cli.project_settings import add_judging
from backprobe.severity import LEVELS

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Judgement

FORMATS: Final = ("text", "concise", "json", "svg", "html", "sarif", "junit", "github")
MACHINE: Final = frozenset({"json", "svg", "html", "sarif", "junit"})
"""Formats that another program reads: they are never mixed with what a script prints."""


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options that `run` and `show` share."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="what is written (default: text)")
    parser.add_argument(
        "--tables", action="store_true", help="in text, show all tensors and backward calls, not only when few"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="write it there")
    parser.add_argument(
        "--fail-on",
        choices=LEVELS,
        help="exit with 1 on findings at least as bad as this (default: warning)",
    )
    add_judging(parser)
    parser.add_argument("--exit-zero", action="store_true", help="report only: exit with 0 whatever was found")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def check_output(args: argparse.Namespace) -> None:
    """Refuse a file that cannot be written, before anything is run.

    Raises:
        UsageError: its folder does not exist, it is a folder, or the system does not let us write it; or the report's
            scripts were not built.
    """
    if args.format == "html":
        from backprobe.show.html_report.assets import AssetsMissing, assets

        try:
            assets()
        except AssetsMissing as error:
            raise UsageError(f"--format html: {error}") from None
    for path in (args.output, getattr(args, "save", None), getattr(args, "patch", None)):
        if path is not None:
            check_file(path)


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written.

    Raises:
        UsageError: its folder does not exist, it is a folder, or the system does not let us write it.
    """
    if path.is_dir():
        raise UsageError(f"`{path}` is a folder: name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder `{path.parent}` to write `{path.name}` into")
    try:
        path.open("ab").close()
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written ({error.strerror}): name another file") from None


@dataclass(frozen=True, slots=True)
class Child:
    """A child process that was captured as well.

    Attributes:
        name: As `multiprocessing` names it. path: of its record; None: it is not kept.
    """

    name: str
    pid: int
    path: Path | None
    record: Record
    judgement: Judgement


def report(
    record: Record,
    judgement: Judgement,
    args: argparse.Namespace,
    script: str,
    stream: TextIO,
    children: Sequence[Child] | None = None,
) -> None:
    """Render and write: to `--output` where it is given, else to the stream; children: None: they were not followed."""
    if args.output is not None:
        text = render_report(record, judgement, args, script, children, color=args.color == "always", width=100)
        try:
            args.output.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            print(text, file=stream, flush=True)  # not lost: the script will not run again for it
            raise OutputLost(f"`{args.output}` was not written ({error.strerror}); the report stands above") from None
        return
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    text = render_report(record, judgement, args, script, children, color=wants_color(args.color, stream), width=width)
    encoding = stream.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def render_report(
    record: Record,
    judgement: Judgement,
    args: argparse.Namespace,
    script: str,
    children: Sequence[Child] | None,
    *,
    color: bool,
    width: int,
) -> str:
    """Render the report in the format that was asked for."""
    if args.format == "json":
        return _json(record, judgement, script, children)
    if args.format == "svg":
        from backprobe.show.drawing import graph, svg

        return svg.render(graph.graph_of(record))
    if args.format == "html":
        from backprobe.show.html_report import html_document

        return html_document.render(record, judgement, script=script)
    if args.format in {"sarif", "junit", "github"}:
        return _for_others(record, judgement, args, script, children or ())
    from backprobe.show.formats import concise
    from backprobe.show.formats import terminal_report as text
    from backprobe.show.terminal_style import Ink

    of_text = args.format == "text"
    blocks: list[str] = []
    for head, shown, verdict in [
        (None, record, judgement),
        *((_head(child), child.record, child.judgement) for child in children or ()),
    ]:
        if head is not None:
            blocks.append(Ink(color)("strong", head))
        if of_text:
            blocks.append(
                text.render(
                    shown,
                    verdict,
                    color=color,
                    width=width,
                    tables=args.tables or None,
                    gradients=bool(getattr(args, "check_gradients", False)),
                )
            )
        else:
            blocks.append(concise.render(shown, verdict))
    return ("\n\n" if of_text else "\n").join(blocks)


def _head(child: Child) -> str:
    """Write the line above a child's report."""
    from backprobe.show.plain_text import plain

    kept = "" if child.path is None else f", {plain(str(child.path))}"
    return f"child process {plain(child.name)} (pid {child.pid}{kept})"


def _json(record: Record, judgement: Judgement, script: str, children: Sequence[Child] | None) -> str:
    from backprobe.show.formats import json

    told = json.report(record, judgement, script=script)
    if children is not None:
        told["children"] = [
            {"name": child.name, "pid": child.pid, "record": None if child.path is None else str(child.path)}
            | json.report(child.record, child.judgement, script=script)
            for child in children
        ]
    return json.dumps(told)


def _for_others(
    record: Record, judgement: Judgement, args: argparse.Namespace, script: str, children: Sequence[Child]
) -> str:
    """Render the findings in another program's format."""
    from backprobe.show.formats import github, junit, sarif
    from backprobe.show.formats.program_report import report_program

    told = [report_program(record, judgement, script=script)]
    told += [report_program(child.record, child.judgement, script=f"{script} {child.name}") for child in children]
    if args.format == "sarif":
        return sarif.render(told, name=script)
    if args.format == "junit":
        return junit.render(told, fail_on=args.fail_on).rstrip("\n")
    return github.render(told)


def wants_color(choice: str, stream: TextIO) -> bool:
    """Choose colour for this stream: as `--color` says, else as NO_COLOR and FORCE_COLOR say, else on a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def exit_code(judgements: Sequence[Judgement], args: argparse.Namespace) -> int:
    """0 or 1, by what was found."""
    found = any(judgement.at_least(args.fail_on) for judgement in judgements)
    return FINDINGS if found and not args.exit_zero else CLEAN


_FIRST_DESCRIPTOR: Final = 200
"""High, so that the script's own files get the numbers that `python` would give them."""


def own_stderr() -> TextIO:
    """Open another stderr, for after a script that may close or replace `sys.stderr`, or close descriptor 2.

    Opened before the script runs; `sys.stderr` itself where descriptor 2 is closed already.
    """
    try:
        descriptor = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    except OSError:
        return sys.stderr
    return open(descriptor, "w", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123 - of a descriptor
