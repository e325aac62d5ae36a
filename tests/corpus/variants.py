"""The corpora's programs written otherwise: what is found must not depend on names, nor on where the code stands.

usage: python -m tests.corpus.variants [--corpus own|second|...|all] [--kinds renamed,split,...] [--only TEXT]

Each faulty program that is on its right line, and each correct program, runs again with its variables renamed, as
attributes of one object, in a function, in a method, and with each call and operation in a statement of its own. Prints
how many are still on the right line and still silent, then each that is not, by name.
"""

import argparse
import ast
import sys
import time
import tomllib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from backprobe.rules import Finding, judge
from tests.corpus.cases import CORPORA, SETS, Case, Corpus, load_set
from tests.corpus.records import Records
from tests.corpus.score import loud, scored

_LOOKS_AT_NAMES = frozenset({"globals", "locals", "vars", "exec", "eval", "dir"})
_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variant:
    """A program written otherwise.

    Attributes:
        places: Where each line of the program stands now.
    """

    text: str
    places: Callable[[int], Collection[int]]


def renamed(program: str) -> Variant | None:
    """Every variable has another name, `v1`, `v2`, ...; None if it has none that can be told from other uses."""
    tree = ast.parse(program)
    return _with_names(program, tree, {name: f"v{at}" for at, name in enumerate(_variables(tree), 1)})


def as_attributes(program: str) -> Variant | None:
    """Every variable outside of functions is an attribute of one object; None where that cannot be."""
    tree = ast.parse(program)
    inner = {one for node in ast.walk(tree) if isinstance(node, _SCOPES) for one in ast.walk(node)}
    bound = {one.id for one in inner if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    made = _with_names(program, tree, {name: f"job.{name}" for name in _variables(tree) if name not in bound})
    if made is None or any(isinstance(node, ast.NamedExpr) for node in ast.walk(tree)):
        return None
    return Variant(f"import types\njob = types.SimpleNamespace()\n{made.text}", lambda line: (line + 2,))


def _variables(tree: ast.Module) -> list[str]:
    """The names of variables, of which every place is known."""
    kept = _names_of_other_things(tree)
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return list(dict.fromkeys(one for one in stored if one not in kept))


def _with_names(program: str, tree: ast.Module, new: dict[str, str]) -> Variant | None:
    places = [
        (node.lineno, node.col_offset, node.id)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in new
    ]
    if not new or _looks_at_names(tree) or _names_of_other_things(tree) & {*new.values(), "job", "types"}:
        return None
    lines = [line.encode() for line in program.splitlines(keepends=True)]
    for line, column, name in sorted(places, reverse=True):
        text = lines[line - 1]
        lines[line - 1] = text[:column] + new[name].encode() + text[column + len(name.encode()) :]
    return Variant(b"".join(lines).decode(), lambda line: (line,))


def _names_of_other_things(tree: ast.Module) -> set[str]:
    """Names of functions, classes, modules, arguments, and those in f-strings, whose places are not told."""
    kept: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kept.add(node.name)
        if isinstance(node, ast.ClassDef):  # its variables are attributes
            kept |= {one.id for part in node.body for one in ast.walk(part) if isinstance(one, ast.Name)}
        if isinstance(node, ast.Import | ast.ImportFrom):
            kept |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        if isinstance(node, ast.arg):
            kept.add(node.arg)
        if isinstance(node, ast.Global | ast.Nonlocal):
            kept |= set(node.names)
        if isinstance(node, ast.ExceptHandler) and node.name:
            kept.add(node.name)
        if isinstance(node, ast.JoinedStr):
            kept |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return kept


def _looks_at_names(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Name) and node.id in _LOOKS_AT_NAMES for node in ast.walk(tree))


def in_a_function(program: str) -> Variant | None:
    """The whole program is the body of a function that is called; None if its text cannot be moved in."""
    return _inside(program, ["def main():"], "    ", "main()")


def in_a_method(program: str) -> Variant | None:
    """The whole program is the body of a method that is called; None if its text cannot be moved in."""
    return _inside(program, ["class Job:", "    def run(self):"], "        ", "Job().run()")


def _inside(program: str, head: list[str], indent: str, call: str) -> Variant | None:
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            return None
        if isinstance(node, ast.ImportFrom) and (node.module == "__future__" or node.names[0].name == "*"):
            return None
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            return None  # a text of several lines would be another text
    if _looks_at_names(tree):
        return None
    lines = [f"{indent}{line}" if line.strip() else line for line in program.splitlines()]
    return Variant("\n".join([*head, *lines, call]) + "\n", lambda line: (line + len(head),))


def split(program: str) -> Variant:
    """Each call and operation stands in a statement of its own, as far as that keeps their order."""
    tree = _Split().visit(ast.parse(program))
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    where: list[tuple[int, int, int]] = []
    for node, now in zip(ast.walk(tree), ast.walk(ast.parse(text)), strict=True):
        if isinstance(node, ast.stmt) and isinstance(now, ast.stmt):
            body: list[ast.stmt] = getattr(node, "body", [])
            last = (body[0].lineno - 1 if body else None) or node.end_lineno or node.lineno
            where.append((node.lineno, max(node.lineno, last), now.lineno))
            pairs = zip(getattr(node, "decorator_list", ()), getattr(now, "decorator_list", ()), strict=True)
            where += [(one.lineno, one.end_lineno or one.lineno, other.lineno) for one, other in pairs]

    def places(line: int) -> list[int]:
        around = [one for one in where if one[0] <= line <= one[1]]
        least = min((last - first for first, last, _now in around), default=0)
        return [now for first, last, now in around if last - first == least]

    return Variant(text, places)


class _Split(ast.NodeTransformer):
    """Puts what a plain statement computes inside of other expressions into statements before it, `t1 = f(x)`."""

    def __init__(self) -> None:
        self._number = 0

    def visit(self, node: ast.AST) -> Any:
        """What stands in the place of a node."""
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return):
            return self.generic_visit(node)
        before: list[ast.stmt] = []
        if isinstance(node.value, ast.Call | ast.BinOp | ast.UnaryOp):
            self._parts(node.value, node, before)
        return [*before, node]

    def _parts(self, value: ast.expr, node: ast.stmt, before: list[ast.stmt]) -> None:
        """Put the parts of an expression before its statement, in the order in which they are computed."""
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Attribute):
                value.func.value = self._named(value.func.value, node, before)
            if not any(isinstance(one, ast.Starred) for one in value.args):
                value.args = [self._named(one, node, before) for one in value.args]
                for word in value.keywords:
                    word.value = self._named(word.value, node, before)
        elif isinstance(value, ast.BinOp):
            value.left = self._named(value.left, node, before)
            value.right = self._named(value.right, node, before)
        elif isinstance(value, ast.UnaryOp):
            value.operand = self._named(value.operand, node, before)

    def _named(self, value: ast.expr, node: ast.stmt, before: list[ast.stmt]) -> ast.expr:
        is_super = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
        constant = isinstance(value, ast.UnaryOp | ast.BinOp) and not any(
            isinstance(one, ast.Name | ast.Call) for one in ast.walk(value)
        )
        if not isinstance(value, ast.Call | ast.BinOp | ast.UnaryOp) or is_super or constant:
            return value
        self._parts(value, node, before)
        self._number += 1
        name = f"t{self._number}"
        made = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value)
        made.lineno, made.end_lineno, made.col_offset = node.lineno, node.end_lineno, node.col_offset
        before.append(made)
        return ast.Name(id=name, ctx=ast.Load())


KINDS: dict[str, Callable[[str], Variant | None]] = {
    "renamed": renamed, "attributes": as_attributes, "function": in_a_function, "method": in_a_method, "split": split
}  # fmt: skip


@dataclass
class Tally:
    """What came of one way to write programs.

    Attributes:
        faulty, found: Programs that were on their right line as they stand, and of them those that still are.
        correct: Programs that were silent as they stand; alarms: of them those that are not.
        other: Programs that cannot be written so, or that end otherwise then.
    """

    faulty: int = 0
    found: int = 0
    correct: int = 0
    other: int = 0
    lost: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)


def measured(corpora: list[Corpus], names: list[str], kinds: dict[str, str], records: Records) -> dict[str, Tally]:
    """Run the programs of corpora in each of these ways."""
    tallies = {name: Tally() for name in names}
    total, started = sum(len(one.cases) for one in corpora), time.monotonic()
    done = 0
    for corpus in corpora:
        for case in corpus.cases:
            done += 1
            if done % 20 == 0 or done == total:
                print(f"{done} of {total} cases, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
            if scored(case, judge(records.of(case.bad)).findings, kinds).strict:
                for name in names:
                    _faulty(tallies[name], corpus.name, case, KINDS[name](case.bad), kinds, records)
            for name in names:
                _correct(tallies[name], f"{corpus.name} {case.id}, repaired", case.good, KINDS[name], records)
        for program in corpus.correct:
            for name in names:
                _correct(tallies[name], f"{corpus.name} {program.name}", program.text, KINDS[name], records)
    return tallies


def _faulty(
    tally: Tally, corpus: str, case: Case, variant: Variant | None, kinds: dict[str, str], records: Records
) -> None:
    if variant is None or not _ends_alike(records, case.bad, variant.text):
        tally.other += 1
        return
    lines, also = (tuple(now for line in one for now in variant.places(line)) for one in (case.lines, case.also))
    written = replace(case, bad=variant.text, lines=lines, also=also)
    score = scored(written, judge(records.of(variant.text)).findings, kinds)
    tally.faulty += 1
    tally.found += score.strict
    if not score.strict:
        how = "fair line" if score.lenient else "kind only" if score.kind else "silent"
        tally.lost.append(f"{corpus} {case.id} ({case.kind}: {how})")


def _correct(tally: Tally, name: str, program: str, way: Callable[[str], Variant | None], records: Records) -> None:
    if loud(judge(records.of(program)).findings):
        return
    variant = way(program)
    if variant is None or not _ends_alike(records, program, variant.text):
        tally.other += 1
        return
    tally.correct += 1
    said = _said(loud(judge(records.of(variant.text)).findings))
    if said:
        tally.alarms.append(f"{name} {said}")


def _said(findings: list[Finding]) -> str:
    return ", ".join(f"{one.rule.code} line {one.location.region.start_line}" for one in findings)


def _ends_alike(records: Records, program: str, variant: str) -> bool:
    ends = [records.of(one).end for one in (program, variant)]
    return None not in ends and len({end.exit_code for end in ends if end is not None}) == 1


def report(tallies: dict[str, Tally]) -> Iterator[str]:
    """A table by way, then each program that is told otherwise."""
    yield "| written otherwise | still on the right line | still silent | cannot be written so |"
    yield "| --- | ---: | ---: | ---: |"
    for name, tally in tallies.items():
        silent = tally.correct - len(tally.alarms)
        yield f"| {name} | {tally.found} of {tally.faulty} | {silent} of {tally.correct} | {tally.other} |"
    for name, tally in tallies.items():
        for what, told in (("lost", tally.lost), ("alarms", tally.alarms)):
            if told:
                yield f"\n{name}, {what}: {'; '.join(told)}."


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", choices=(*SETS, "all"), default="all")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--only", default="", help="cases whose id or kind contains this, and no correct programs")
    asked = parser.parse_args()
    names = asked.kinds.split(",")
    if unknown := [name for name in names if name not in KINDS]:
        parser.error(f"there is no way {unknown[0]!r}: {', '.join(KINDS)}")
    kinds = tomllib.loads((CORPORA / "kinds.toml").read_text())
    corpora = [load_set(name) for name in SETS if asked.corpus in (name, "all")]
    if asked.only:
        corpora = [
            replace(corpus, cases=tuple(case for case in corpus.cases if asked.only in case.id + case.kind), correct=())
            for corpus in corpora
        ]
    with Records() as records:
        print("\n".join(report(measured(corpora, names, kinds, records))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
