"""Whether backward calls belong to parts of one batch: a batch that is cut, or a counter of the program.

for i, x in enumerate(batches):
loss_of(x).backward()
if (i + 1) % 4 == 0:  # a window of four
optimizer.step()
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import Tree, method_called, site_of, statement_at, tree_of

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.gradients.grad_spans import Span

LEAST: Final = 2
"""Windows, where only the program's counter shows them."""

_CUTS: Final = frozenset({"chunk", "split", "tensor_split", "array_split"})


@dataclass(frozen=True, slots=True)
class Window:
    """What shows that the calls belong together: a batch that is cut, or a counter; the number of them as written."""

    is_cut: bool
    number: ast.expr | None


def window_of(record: Record, spans: list[Span]) -> Window | None:
    """What shows in the program that the calls are parts of one batch."""
    site = site_of(record, spans[0].filled.site or 0)
    node, tree = statement_at(record, site.site), tree_of(record, site)
    if node is None or tree is None:
        return None
    loop = next((one for one in tree.ancestors(node) if isinstance(one, ast.For | ast.While)), None)
    cut = _cut_in(loop, tree) if isinstance(loop, ast.For) else None
    if cut is not None:
        return Window(is_cut=True, number=cut if isinstance(cut, ast.Name) else None)
    counted = _counter(record, spans, tree, loop)
    same = len({len(span.arrivals) for span in spans}) == 1
    return Window(is_cut=False, number=counted) if counted is not None and same and len(spans) >= LEAST else None


def _cut_in(loop: ast.For, tree: Tree) -> ast.expr | None:
    """What the loop goes over: parts of one tensor, or slices of one. The number of chunks, else the cut."""
    names = {part.id for part in ast.walk(loop.iter) if isinstance(part, ast.Name)}
    made = [one.value for one in tree.nodes if isinstance(one, ast.Assign) and _binds(one, names)]
    for part in (part for value in (loop.iter, *made) for part in ast.walk(value)):
        if isinstance(part, ast.Call) and method_called(part) in _CUTS:
            return part.args[0] if method_called(part) == "chunk" and len(part.args) == 1 else part
    counters = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    for part in ast.walk(loop):
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
            first = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
            is_named = isinstance(first, ast.Name) and first.id in _slices(loop)
            bounded = isinstance(first, ast.Slice) and first.lower is not None and first.upper is not None
            used = {one.id for one in ast.walk(first) if isinstance(one, ast.Name)}
            if is_named or (bounded and used & counters and _is_whole(loop, part)):
                return part
    return None


def _slices(loop: ast.For) -> set[str]:
    """The names that the loop gives slices: `rows = slice(i * n, (i + 1) * n)`."""
    given = (one for one in ast.walk(loop) if isinstance(one, ast.Assign) and method_called(one.value) == "slice")
    return {target.id for one in given for target in one.targets if isinstance(target, ast.Name)}


def _binds(node: ast.Assign, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for target in node.targets for part in ast.walk(target))


def _is_whole(loop: ast.For, part: ast.Subscript) -> bool:
    """What is cut was made before the loop."""
    made = (one for one in ast.walk(loop) if isinstance(one, ast.Assign))
    root = ast.unparse(part.value).partition(".")[0]
    return isinstance(part.value, ast.Name | ast.Attribute) and not any(_binds(one, {root}) for one in made)


def _counter(record: Record, spans: list[Span], tree: Tree, loop: ast.AST | None) -> ast.expr | None:
    """`k` of the `if (i + 1) % k == 0` in the same loop that the step stands in, and the backward call does not."""
    step = statement_at(record, spans[0].updates[0].site)
    filled = statement_at(record, spans[0].filled.site)
    if step is None or filled is None or loop is None:
        return None
    around = set(tree.ancestors(filled))
    for one in tree.ancestors(step):
        if isinstance(one, ast.If) and one not in around and loop in set(tree.ancestors(one)):
            for part in ast.walk(one.test):
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                    return part.right
    return None
