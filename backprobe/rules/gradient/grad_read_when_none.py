"""BP203 grad-read-when-none: `.grad` is used at a place where it is None.

What it finds:
    A program uses `.grad` of a leaf before any backward call has filled it, or behind the line that cleared it: the use
    raises, or what is kept is None each time. The finding stands at the read.

Why it matters:
    A logged norm, a clipped value or an update that begins with None either stops the program or is empty all along.

What PyTorch does:
    `.grad` is None until a backward call reaches the tensor. `zero_grad()` sets it to None again, not to zeros, unless
    it is called with `set_to_none=False`. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    history = []
    for _ in range(3):
        optimizer.zero_grad()
        history.append(weight.grad)  # <- here
        weight.square().sum().backward()
        optimizer.step()

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    history = []
    for _ in range(3):
        optimizer.zero_grad()
        weight.square().sum().backward()
        history.append(weight.grad)
        optimizer.step()

Near miss: the program asks first
    import torch

    weight = torch.ones(3, requires_grad=True)
    for _ in range(3):
        if weight.grad is not None:
            weight.grad.zero_()
        weight.square().sum().backward()

Near miss: None is printed, to show that it is None
    import torch

    weight = torch.ones(3, requires_grad=True)
    for _ in range(3):
        weight.grad = None
        print("before:", weight.grad)
        weight.square().sum().backward()

Near miss: only the first turn finds None
    import torch

    weight = torch.ones(3, requires_grad=True)
    last = []
    for _ in range(3):
        last.append(weight.grad)
        weight.square().sum().backward()

Blind spots:
    A None that is kept once and never fails. A tensor that no backward call ever reaches is BP201's, or a cut's.

Source:
    torch.Tensor.grad and torch.optim.Optimizer.zero_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_use import is_only_tested
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import (
    is_same_statement,
    method_called,
    parts_of,
    site_of,
    statement,
    tree_of,
)
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import GradRead, LeafGrad, Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="grad-read-when-none",
    code="BP203",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("grad-read", "grad-life", "raised", "snapshot"),
)

LEAST: Final = 2
"""Times that a read must have found None before what it keeps is said to be empty: once may be meant."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per place of a read."""
    places: dict[int, list[GradRead]] = {}
    for read in record.grad_reads:
        places.setdefault(read.site, []).append(read)
    for reads in places.values():
        empty = [read for read in reads if _is_empty(record, read)]
        if not empty:
            continue
        raised = _failed(record, empty[-1])
        each = [read for read in reads if read.tensor == empty[0].tensor]
        kept = len(each) >= LEAST and all(read in empty for read in each) and not _is_shown(record, empty[0])
        if raised is not None or (kept and _gets_one(record, empty[0])):
            yield _finding(record, empty, raised)


def _is_empty(record: Record, read: GradRead) -> bool:
    """A None that is used, of a leaf that requires grad."""
    if not read.was_none or is_only_tested(record, read):
        return False
    state = state_at(record, read.tensor, read.moment)
    return state is not None and state.is_leaf and state.requires_grad


def _gets_one(record: Record, read: GradRead) -> bool:
    """A backward call does bring the tensor a gradient, at another time."""
    return any(row.call is not None and row.kind != "untouched" for row in lookup(record).leaf_grads_of[read.tensor])


def _failed(record: Record, read: GradRead) -> Raised | None:
    """The exception about None that ended the program in that statement, or in one that reads what it was bound to."""
    last = next((row for row in record.raised if record.end is not None and row.n == record.end.exception), None)
    if last is None or "NoneType" not in last.message or last.site is None:
        return None
    bound = _bound_to(record, read)
    same = is_same_statement(record, last.site, read.site)
    return last if same or set(bound) & set(site_of(record, last.site).reads) else None


def _bound_to(record: Record, read: GradRead) -> list[str]:
    """The names that are given just what is read: `g` of `g = w.grad`."""
    node = statement(record, site_of(record, read.site))
    plain = isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute)
    return [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) and plain else []


def _is_shown(record: Record, read: GradRead) -> bool:
    """It is printed, or goes into a text."""
    site = site_of(record, read.site)
    node, tree = statement(record, site), tree_of(record, site)
    for part in parts_of(node):
        if isinstance(part, ast.Attribute) and part.attr == "grad" and tree is not None:
            around = list(tree.ancestors(part))
            if any(isinstance(above, ast.JoinedStr) or method_called(above) == "print" for above in around):
                return True
    return False


def _emptied(record: Record, read: GradRead) -> LeafGrad | None:
    """What set it to None before the read; None where nothing had filled it yet."""
    rows = [row for row in lookup(record).leaf_grads_of[read.tensor] if row.moment <= read.moment]
    rows = [row for row in rows if row.kind != "untouched"]
    return rows[-1] if rows and rows[-1].kind == "set-none" else None


def _finding(record: Record, empty: list[GradRead], raised: Raised | None) -> Finding:
    read = empty[0]
    site = site_of(record, read.site)
    name = next((one for one in site.reads if not one.endswith(".grad")), "this tensor")
    cleared = _emptied(record, empty[-1])
    why = "no backward call has filled it yet"
    if cleared is not None and cleared.site is not None:
        why = f"{line_words(record, cleared.site, site.site)} has cleared it"
    effect = f"What is kept is None each time: {len(empty)} of {len(empty)} reads found it."
    if raised is not None:
        effect = f"The program stops there: {raised.message.splitlines()[0][:80]}."
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{name}.grad` is None where it is used: {why}.",
            effect,
            "Read it after `backward()`, and before it is cleared.",
        ),
        binding=name,
        moments=[one.moment for one in empty],
        related=(
            ("cleared here", None if cleared is None else cleared.site),
            (
                "raised here",
                None if raised is None or is_same_statement(record, raised.site, read.site) else raised.site,
            ),
        ),
        evidence={"tensor": read.tensor, "reads": len(empty), "raised": None if raised is None else raised.type},
        tensors=(read.tensor,),
        level=None if raised is None else "error",
    )
