"""BP102 leaf-lost-by-rebinding: an update binds the trained name to its own result, which is no leaf any more.

What it finds:
    A leaf had a gradient, a statement bound its name to a tensor computed from it, and the gradient of that name is
    None from then on, or the next loss has no history; or the name is a loop's own, which held a parameter, and nothing
    reads what it was bound to. The finding stands at that statement.

Why it matters:
    After the first update there is no leaf left that a gradient could be stored in: training stops, or fails a line
    later at something else.

What PyTorch does:
    `w = w - lr * w.grad` makes a new tensor. It is the result of an operation, so a backward call passes its gradient
    on and stores none. Seen in torch 2.13.

Example:
    import torch

    w = torch.ones(3, requires_grad=True)
    for _ in range(2):
        loss = (w * w).sum()
        loss.backward()
        seen = w.grad
        if seen is not None:
            w = w - 0.1 * seen  # <- here
    print(w.grad)

Use instead:
    import torch

    w = torch.ones(3, requires_grad=True)
    for _ in range(2):
        loss = (w * w).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None

Near miss: the result is made a leaf again
    import torch

    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        loss = (w * w).sum()
        loss.backward()
        w = (w - 0.1 * w.grad).detach().requires_grad_()

Near miss: a loop's name stands for one tensor after the other
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.sum().backward()
    for tensor in (x, hidden):
        if tensor.grad is not None:
            print(tensor.grad)

Near miss: the results are collected
    import torch

    weights = [torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)]
    sum((w * w).sum() for w in weights).backward()
    moved = []
    for w in weights:
        w = w - 0.1 * w.grad
        moved.append(w.detach())
    print(moved)

Near miss: adapted weights under other names
    import torch

    w = torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad((w * w).sum(), w, create_graph=True)
    fast = w - 0.1 * g
    (fast * fast).sum().backward()
    print(w.grad)

Blind spots:
    A name that is rebound inside a library is not seen.

Source:
    torch.Tensor.is_leaf in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.parameter_uses import owners
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.assignments import reads_behind
from backprobe.rules.analysis.source.syntax import parts_of, site_of, statement, statement_at, tree_of, value_of
from backprobe.rules.analysis.tensors.autograd_errors import level_at, level_of
from backprobe.rules.analysis.tensors.parents import undetached_from
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="leaf-lost-by-rebinding",
    code="BP102",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("binding", "snapshot", "parents", "grad-read"),
    explains=(),
    refines=("non-leaf-grad-read",),
)


_SCOPES: Final = (ast.For, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that rebinds a leaf."""
    groups: dict[int, list[tuple[Binding, int]]] = {}
    for binding in record.bindings:
        leaf = _lost(record, binding)
        if leaf is not None:
            groups.setdefault(binding.site, []).append((binding, leaf))
    for site, found in groups.items():
        yield _finding(record, site, found)


def _lost(record: Record, binding: Binding) -> int | None:
    """The leaf of that name, with a gradient, that gave way to a result of itself whose gradient the program needs.

    Or the parameter that a loop's name held, and a statement bound that name to something that nothing reads.
    """
    parameter = _held_by_loop(record, binding)
    if parameter is not None and _is_unread(record, binding):
        return parameter
    new = state_at(record, binding.tensor, binding.moment)
    if new is None or (new.requires_grad and new.is_leaf) or not _reads_itself(record, binding):
        return None
    read = any(row.tensor == binding.tensor and row.was_none for row in record.grad_reads)
    if not (read or _raised_untracked(record, binding) or _is_thrown_away(record, binding)):
        return None
    for leaf in _computed_from(record, binding):
        old = state_at(record, leaf, binding.moment)
        named = any(
            row.name == binding.name and row.moment < binding.moment for row in lookup(record).bindings_of[leaf]
        )
        if named and old is not None and old.is_leaf and old.requires_grad and old.grad == "present":
            return leaf
    return None


def _computed_from(record: Record, binding: Binding) -> list[int]:
    """What a bound tensor was computed from: by the names it was read from, and by the node that made it.

    Also by way of what was computed for it since the last backward call: `new = w - step; w = new.clamp(0, 1)`.
    """
    index = lookup(record)
    made = index.node_of.get(binding.tensor)
    below = [edge.to_node for edge in index.edges_of[made.node] if edge.to_node is not None] if made else []
    variables = [index.nodes[node].variable for node in below if node in index.nodes]
    found = dict.fromkeys((*binding.parents, *(variable for variable in variables if variable is not None)))
    calls = [call.moment_before for call in record.backward_calls if call.moment_before <= binding.moment]
    waiting = list(binding.parents) if calls else []
    while waiting:
        tensor = waiting.pop()
        more = (
            undetached_from(record, tensor) - found.keys() if index.tensors[tensor].moment > calls[-1] else set[int]()
        )
        found |= dict.fromkeys(sorted(more))
        waiting += sorted(more)
    return list(found)


def _reads_itself(record: Record, binding: Binding) -> bool:
    """The statement reads the name that it binds, or names that stand for what reads it."""
    known, key = _known_reads(record), (binding.site, binding.name)
    if key not in known:
        site = site_of(record, binding.site)
        tree, value = tree_of(record, site), value_of(statement(record, site))
        behind = () if tree is None else reads_behind(record, tree, value)
        known[key] = binding.name in site.reads or binding.name in behind
    return known[key]


@table
def _known_reads(_record: Record) -> dict[tuple[int, str], bool]:
    """What `_reads_itself` has found, by statement and name."""
    return {}


def _raised_untracked(record: Record, binding: Binding) -> Raised | None:
    """The statement ran without tracking, nothing flagged the name again, and a backward call then found no history."""
    states = lookup(record).snapshots_of[binding.tensor]
    if any(state.requires_grad for state in states):
        return None
    later = (row for row in record.raised if row.moment is not None and row.moment > binding.moment)
    return next((row for row in later if "does not require grad" in row.message), None)


def _held_by_loop(record: Record, binding: Binding) -> int | None:
    """The parameter of a module that a name held as the loop around a statement gave it, before another tensor."""
    old = binding.replaces
    if old is None or old not in owners(record) or not isinstance(statement_at(record, binding.site), ast.Assign):
        return None
    given = [row for row in lookup(record).bindings_of[old] if row.name == binding.name]
    return old if any(isinstance(statement_at(record, row.site), ast.For) for row in given) else None


def _is_thrown_away(record: Record, binding: Binding) -> bool:
    """A statement binds a loop's own name to an update, and nothing reads the name until the loop binds it again."""
    node = statement_at(record, binding.site)
    return any(_is_grad(part) for part in parts_of(node)) and _is_unread(record, binding)


def _is_unread(record: Record, binding: Binding) -> bool:
    """A statement binds a loop's own name, and nothing reads the name until the loop binds it again."""
    site = site_of(record, binding.site)
    node, tree = statement(record, site), tree_of(record, site)
    if node is None or tree is None:
        return False
    loops = (around for around in tree.ancestors(node) if isinstance(around, _SCOPES))
    loop = next(
        (around for around in loops if not isinstance(around, ast.For) or binding.name in _bound_by(around)), None
    )
    if not isinstance(loop, ast.For):
        return False
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return not any(
        isinstance(part, ast.Name) and part.id == binding.name and (part.lineno, part.col_offset) >= end
        for one in loop.body
        for part in ast.walk(one)
    )


def _is_grad(part: ast.AST) -> bool:
    return isinstance(part, ast.Attribute) and part.attr == "grad"


def _bound_by(loop: ast.For) -> set[str]:
    return {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}


def _finding(record: Record, site: int, found: list[tuple[Binding, int]]) -> Finding:
    first, leaf = found[0]
    name = first.name
    read = next((row for row in record.grad_reads if row.tensor == first.tensor and row.was_none), None)
    raised = _raised_untracked(record, first)
    made = lookup(record).tensors[leaf].site
    lines = (
        (
            f"`{name}` is only this loop's name: the statement makes a new tensor, and nothing reads that.",
            "What the loop runs over stays as it is: nothing is updated.",
            f"Change `{name}` in place under `torch.no_grad()`.",
        )
        if _held_by_loop(record, first) is not None or _is_thrown_away(record, first)
        else (
            f"This statement makes a new tensor and calls it `{name}`: it is no leaf, so `{name}.grad` stays None.",
            "Only the first update has an effect.",
            f"Change `{name}` in place under `torch.no_grad()`, or add `.detach().requires_grad_()`.",
        )
    )
    return told(
        record,
        RULE,
        site,
        lines,
        binding=name,
        moments=[row.moment for row, _leaf in found],
        related=(
            (f"the leaf that was called `{name}`", made),
            (f"`{name}.grad` is read here and is None", None if read is None else read.site),
            ("this backward call finds no history", None if raised is None else raised.site),
        ),
        level=level_at(record, None if read is None else read.site) if raised is None else level_of(record, raised),
        evidence={"leaf": leaf, "result": first.tensor, "is_leaf": False},
        tensors=[row.tensor for row, _leaf in found],
    )
