"""A record whose statements stand in another source: what ran stays, and the syntax around it is that of any Python file.

A rule reads a record's rows and the text that they point into. A program that breaks a rule needs both the rows and the
syntax, so the rows are those of a program that the rule knows, and the syntax is that of the standard library.
"""

from __future__ import annotations

import ast
import keyword
import random
import re
from collections import defaultdict
from dataclasses import dataclass

import msgspec

from backprobe.capture.options import Caps
from backprobe.capture.output.writer import Writer
from backprobe.capture.rewriting.rewriter import Rewriter
from backprobe.capture.rewriting.sites import Sites
from backprobe.record import Binding, Operation, Record, Row, Site

_WORD = re.compile(r"""(?<![\w"'\\.])[A-Za-z_]\w*(?!["'\w])""")
Place = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Described:
    """A source as the rewriter describes it.

    Attributes:
        places: Of each statement, where its operations stand.
    """

    text: str
    sites: list[Site]
    places: dict[int, list[Place]]


def describe(text: str) -> Described | None:
    """Describe a source as capture would; None if it has no statement that capture notes."""
    rows: list[Row] = []
    sites = Sites(Writer(Caps(), lambda _frame: None))
    sites.rows = []
    sites.add_source("other.py", "other.py", text)
    Rewriter(sites, "other.py").module(ast.parse(text))
    rows = [row for table, row in sites.rows if table == "sites"]
    places: defaultdict[int, list[Place]] = defaultdict(list)
    for operation in sites.operations.facts:
        places[operation.statement].append(operation.place)
    return Described(text, [row for row in rows if isinstance(row, Site)], places) if rows else None


def rename(text: str, names: list[str], seed: int) -> str:
    """Give about half of the names of a source one of a few, so that its statements read and bind what others do."""
    chooser = random.Random(seed)
    given: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        word = found[0]
        if keyword.iskeyword(word) or keyword.issoftkeyword(word):
            return word
        if word not in given:
            given[word] = chooser.choice(names) if chooser.random() < 0.5 else word
        return given[word]

    new = _WORD.sub(renamed, text)
    try:
        ast.parse(new)
    except SyntaxError:  # it was the name of a conversion in an f-string, or `print` before something
        return text
    return new


def names_of(record: Record) -> list[str]:
    """Return the plain names that a record's statements bind and read, and some that torch's programs share."""
    found = {name for row in record.sites for name in (*row.targets, *row.reads) if name.isidentifier()}
    return sorted({*found} - {"_", "print"} | {"len", "loss", "model", "optimizer", "self", "step", "torch", "x"})


def transplant(record: Record, other: Described, seed: int) -> Record:
    """Move some or all of a record's statements to statements of another source, of the same kind where it has one.

    They come from one part of the other source, in order, so that what one of them binds another one reads. The other
    source is put behind the first of the record's own, so that statements that stay are where they were.
    """
    chooser = random.Random(seed)
    first, lines = record.sources[0], record.sources[0].text.count("\n") + 1
    moved = _moved(chooser, record, other)
    text = f"{first.text}\n{other.text}"
    return msgspec.structs.replace(
        record,
        sources=(msgspec.structs.replace(first, text=text), *record.sources[1:]),
        sites=tuple(_site(row, moved.get(row.site), first.source, lines) for row in record.sites),
        bindings=tuple(_binding(record, row, moved.get(row.site)) for row in record.bindings),
        operations=tuple(_operation(chooser, row, moved.get(row.statement), other, lines) for row in record.operations),
    )


def _moved(chooser: random.Random, record: Record, other: Described) -> dict[int, Site]:
    """The statements that move, each with the one that it becomes."""
    share = chooser.choice((0.3, 0.7, 1.0))
    sites = sorted((row for row in record.sites if chooser.random() < share), key=lambda row: (row.line, row.col))
    start = chooser.randrange(len(other.sites))
    part = other.sites[start : start + max(8, len(sites) * chooser.choice((1, 4)))]
    moved: dict[int, Site] = {}
    for row in sites:
        alike = [to for to in part if to.kind == row.kind and bool(to.targets) == bool(row.targets)]
        moved[row.site] = chooser.choice(alike or part)
    in_order = sorted(moved.values(), key=lambda row: (row.line, row.col))
    by_kind: defaultdict[str, list[Site]] = defaultdict(list)
    for to in in_order:
        by_kind[to.kind].append(to)
    return {row.site: by_kind[moved[row.site].kind].pop(0) for row in sites}


def _site(site: Site, to: Site | None, source: int, lines: int) -> Site:
    if to is None:
        return site
    return msgspec.structs.replace(
        to,
        site=site.site,
        source=source,
        line=to.line + lines,
        end_line=to.end_line + lines,
        loop_line=None if to.loop_line is None else to.loop_line + lines,
    )


def _binding(record: Record, row: Binding, to: Site | None) -> Binding:
    if to is None or not to.targets:
        return row
    targets = next(site.targets for site in record.sites if site.site == row.site)
    at = targets.index(row.name) if row.name in targets else 0
    return msgspec.structs.replace(row, name=to.targets[at % len(to.targets)], function=to.function)


def _operation(chooser: random.Random, row: Operation, to: Site | None, other: Described, lines: int) -> Operation:
    if to is None:
        return row
    places = other.places.get(to.site) or [(to.line, to.col, to.end_line, to.end_col)]
    line, col, end_line, end_col = chooser.choice(places)
    return msgspec.structs.replace(row, line=line + lines, col=col, end_line=end_line + lines, end_col=end_col)
