"""Findings about a cut: what ended whose history, and who goes without a gradient for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from backprobe.rules.analysis.graph.breaks import Break, breaks
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.break_syntax import Kind, ending_region
from backprobe.rules.analysis.source.naming import capital, optimizer_name, together
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement_at, text_in
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.terms.lookup_codes import code_cuts
from backprobe.rules.analysis.terms.partial_cuts import partial_cuts
from backprobe.rules.analysis.terms.samples import drawn_cuts
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding import Edit, Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words, source_lines

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding
    from backprobe.rules.framework.rule import Rule


def is_constant_penalty(one: Break) -> bool:
    """A term of parameters that loses their history where it is made: it is told as a term that is a constant."""
    is_own = one.kind == "no-grad" or (one.kind == "detach" and one.site == one.made)
    return bool(one.term) and one.of_parameters and is_own


def breaks_of(record: Record, kind: Kind) -> Iterator[Break]:
    """The cuts of one kind, total and partial; of one in a statement that an exception was caught for, too."""
    every = (*breaks(record), *partial_cuts(record), *drawn_cuts(record), *code_cuts(record))
    return (one for one in every if one.kind == kind and not is_constant_penalty(one))


def told_break(record: Record, rule: Rule, one: Break, first: str, advice: str, fixes: Sequence[Fix] = ()) -> Finding:
    """A finding at the expression that ends the history.

    Args:
        first: What ends what, in the user's own names, with `{who}` where those who lose by it are named; advice: what
            to change.
    """
    where = "" if one.root is None else f" at {line_words(record, one.root, one.site)}"
    who = together(record, one.leaves)
    them = "it" if len(one.leaves) == 1 else "them"
    hurt = f"The backward call{where} does not reach {them}: {_hurt(record, one)}."
    if one.is_partial:
        hurt = f"No gradient of the loss{where} comes back through it: only other ways train {them}."
    if one.term:
        hurt = f"`{one.term}` is a constant in the loss{where}: its other terms train, this one changes no gradient."
    if one.raised is not None:
        hurt = f"The backward call{where} finds no history at all, and raises."
    moments = [lookup(record).calls[call].moment_before for call in one.calls] or [one.moment]
    return told(
        record,
        rule,
        one.site,
        (capital(first.replace("{who}", who)), hurt, advice),
        binding=named(record, one),
        moments=[max(one.moment, 0), *moments[1:]],
        region=marked(record, one),
        related=_related(record, one),
        evidence={
            "lost": one.lost[:200],
            "ended_by": one.ending.how,
            "without_gradient": [*one.leaves[:16]],
            **({"term": one.term[:200]} if one.term else {}),
            "backward_calls": [*one.calls[:16]],
        },
        fixes=fixes if not one.others else (),
        tensors=[*one.tensors, *_bound(record, one)] if one.is_partial else [*one.leaves, *_bound(record, one)],
        calls=one.calls,
        optimizers=sorted({held for leaf in one.leaves for held in in_optimizers(record).get(leaf, ())}),
        level="note" if _ends_a_step(record, one) else None if one.raised is None else level_of(record, one.raised),
    )


def _ends_a_step(record: Record, one: Break) -> bool:
    """A name is bound to its own value without history, always behind a backward call that came after that value.

    So a state is carried from step to step without the graph of the last one, which is meant. That its own module then
    learns nothing is a doubt.
    """
    node = statement_at(record, one.site)
    called = node.value if isinstance(node, ast.Assign) else None
    if not (isinstance(node, ast.Assign) and isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute)):
        return False
    if called is not one.ending.node or ast.unparse(node.targets[0]) != ast.unparse(called.func.value):
        return False
    rows = [row for row in record.bindings if row.site == one.site]
    tensors, calls = lookup(record).tensors, [call.moment_before for call in record.backward_calls]
    return bool(rows) and all(
        any(tensors[parent].moment < call < row.moment for call in calls) for row in rows for parent in row.parents
    )


def _hurt(record: Record, one: Break) -> str:
    held = sorted({row for leaf in one.leaves for row in in_optimizers(record).get(leaf, ())})
    if held:
        return f"`{optimizer_name(record, held[0])}` steps, and nothing is learned there"
    return "`.grad` stays None there"


def _related(record: Record, one: Break) -> Iterator[tuple[str, int | None]]:
    if one.is_partial:
        yield "this backward call gets no gradient from it", one.root
        return
    for leaf in one.leaves[:1]:
        held = in_optimizers(record).get(leaf, ())
        site = next((row.site for row in record.optimizers if row.optimizer in held), None)
        yield f"{together(record, one.leaves)} {'is' if len(one.leaves) == 1 else 'are'} to be trained here", site
    yield f"this backward call does not reach {'it' if len(one.leaves) == 1 else 'them'}", one.root


def named(record: Record, one: Break) -> str:
    """The name that the statement gives the value, else the expression whose history is lost."""
    targets = site_of(record, one.site).targets
    return targets[0] if targets else one.lost[:80]


def _bound(record: Record, one: Break) -> list[int]:
    """The tensors that the statement of the cut bound."""
    return [row.tensor for row in record.bindings if row.site == one.site][:64]


def marked(record: Record, one: Break) -> Region:
    """The expression at fault; of a chain over several lines its last link."""
    return in_characters(record, one.source, ending_region(one.ending.node))


def in_characters(record: Record, source: int, region: tuple[int, int, int, int]) -> Region:
    """A region in characters from one in bytes, as `ast` counts."""
    line, start, end_line, end = region
    part = ast.Name(id="", lineno=line, col_offset=start, end_lineno=end_line, end_col_offset=end)
    return region_in(record, source, part)


def value_text(record: Record, one: Break) -> str:
    """What comes out, as the program calls it."""
    targets = site_of(record, one.site).targets
    return f"`{targets[0]}`" if targets else "this value"


def ended_text(one: Break) -> str:
    """The expression at fault as a reader knows it, cut to what a line can hold."""
    text = " ".join(ast.unparse(one.ending.node).split())
    return text if len(text) <= 60 else one.ending.how.strip("`")


def without_call(record: Record, one: Break) -> Edit | None:
    """Take `.detach()`, `.item()` or `.data` off the value it is called on; None if it is none of these."""
    node = one.ending.node
    attribute = node.func if isinstance(node, ast.Call) else node
    if not isinstance(attribute, ast.Attribute) or (isinstance(node, ast.Call) and (node.args or node.keywords)):
        return None
    whole, inner = region_in(record, one.source, node), region_in(record, one.source, attribute.value)
    behind = Region(start_line=inner.end_line, start_col=inner.end_col, end_line=whole.end_line, end_col=whole.end_col)
    before = text_in(record, one.source, behind).partition(".")[0]  # brackets and lines between the value and the dot
    col = len(before.rpartition("\n")[2]) + (1 if "\n" in before else inner.end_col)
    region = msgspec.structs.replace(behind, start_line=inner.end_line + before.count("\n"), start_col=col)
    return Edit(path=lookup(record).sources[one.source].path, region=region, text="")


def replaced(record: Record, one: Break, part: ast.expr, text: str) -> Edit:
    """Write something else in place of a part of the expression at fault."""
    return Edit(path=lookup(record).sources[one.source].path, region=region_in(record, one.source, part), text=text)


def without_line(record: Record, one: Break, node: ast.expr) -> Edit:
    """Take out the line that a decorator stands on."""
    line = node.lineno
    end = len(source_lines(record)[one.source][line - 1]) + 1
    region = Region(start_line=line, start_col=1, end_line=line, end_col=end)
    if line < len(source_lines(record)[one.source]):
        region = Region(start_line=line, start_col=1, end_line=line + 1, end_col=1)
    return Edit(path=lookup(record).sources[one.source].path, region=region, text="")
