"""BP101 non-leaf-grad-read: `.grad` is read on a tensor that autograd stores no gradient in.

What it finds:
    A program reads `.grad` of a tensor that is not a leaf and was not told to retain its gradient. What it reads is
    None. The finding stands at the statement that made the tensor: a copy by `.to()`, a view, arithmetic. Where the
    program passes over the None, `if g is None: continue`, and never finds anything else there, it stands at the read;
    it is a note if a `retain_grad` of the program did not run.

Why it matters:
    The gradient was computed and went on to the leaves. Code that tests for None skips its work in silence; other code
    fails far from the cause.

What PyTorch does:
    A backward call stores gradients in the leaves: tensors that require grad and that no operation made. Everything
    else passes its gradient on. `retain_grad()` before the backward call asks for it to be kept. Seen in torch 2.13,
    which also warns at the read.

Example:
    import torch

    w = torch.ones(3, requires_grad=True).to(torch.float64)  # <- here
    loss = (w * w).sum()
    loss.backward()
    step = w.grad

Use instead:
    import torch

    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    step = w.grad

Near miss: the gradient of an intermediate is retained
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.retain_grad()
    hidden.sum().backward()
    seen = hidden.grad

Near miss: the program asks first
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.sum().backward()
    for tensor in (x, hidden):
        if tensor.is_leaf:
            print(tensor.grad)

Near miss: a table of states shows that it knows
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.sum().backward()
    print(hidden.is_leaf, hidden.grad)

Near miss: the None is only tested for
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.sum().backward()
    if hidden.grad is not None:
        print("kept")

Near miss: a test that passes over results and lets leaves through
    import torch

    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        hidden = w * 2
        hidden.sum().backward()
        for tensor in (w, hidden):
            if tensor.grad is not None:
                print(tensor.grad.norm())

Near miss: the gradient is returned
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    (seen,) = torch.autograd.grad(hidden.sum(), hidden)
    print(hidden.grad, seen)

Near miss: the read comes before any backward call
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    print(hidden.grad)
    hidden.sum().backward()

Blind spots:
    A read inside a library, or through `getattr`, is not seen. A tensor that `retain_grad()` was called on too late
    is BP103's; a name that an update bound to its own result is BP102's.

Source:
    torch.Tensor.is_leaf and torch.Tensor.retain_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_use import is_guarding, is_only_tested, resting_retention
from backprobe.rules.analysis.graph.reach import arrived_at
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import insertion, keyword, line_after, outermost, without_keyword
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, tree_of, value_of
from backprobe.rules.analysis.tensors.autograd_errors import level_at
from backprobe.rules.analysis.training.steps import state_at, training_step_of
from backprobe.rules.framework.finding import Finding, Fix, Occurrences, Related, Subject, rule_name
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import location
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, GradRead, Record, Site

RULE = Rule(
    name="non-leaf-grad-read",
    code="BP101",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("grad-read", "snapshot", "backward", "site"),
)

LEAST: Final = 2
"""Backward calls after which a test found None: once may be a trial."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per read of a gradient that autograd passed on."""
    tested: defaultdict[int, list[tuple[GradRead, BackwardCall]]] = defaultdict(list)
    for read in record.grad_reads:
        made = lookup(record).tensors[read.tensor].site
        call = _passed_through(record, read) if made is not None and _stores_nothing(record, read) else None
        if call is None or made is None:
            continue
        if is_only_tested(record, read):
            tested[read.site].append((read, call))
        else:
            yield _finding(record, read, call, site_of(record, made))
    for site, reads in tested.items():
        every = [read for read in record.grad_reads if read.site == site]
        is_always_none = all(read.was_none for read in every) and len({call.call for _read, call in reads}) >= LEAST
        if is_always_none and is_guarding(record, reads[0][0]):
            yield _finding_of_test(record, site, reads)


def _stores_nothing(record: Record, read: GradRead) -> bool:
    """It read None of a tensor that is no leaf and retains no gradient, and does not look at `is_leaf` there."""
    state = state_at(record, read.tensor, read.moment)
    if not read.was_none or state is None or state.is_leaf or state.retains_grad:
        return False
    return not _asks_is_leaf(record, site_of(record, read.site))


def _passed_through(record: Record, read: GradRead) -> BackwardCall | None:
    """The last backward call before the read that a gradient came through this tensor in."""
    node = lookup(record).node_of.get(read.tensor)
    for call in reversed(record.backward_calls):
        if call.moment_after is None or call.moment_after > read.moment or not call.accumulate_grad:
            continue
        if any(root.tensor == read.tensor for root in call.roots):
            return call
        if node is not None and arrived_at(record, call, node, ran=True):
            return call
    return None


def _asks_is_leaf(record: Record, site: Site) -> bool:
    """The statement of the read, or a condition around it, reads `is_leaf`: the program knows what it looks at."""
    node, tree = statement(record, site), tree_of(record, site)
    if node is None or tree is None:
        return False
    around = [above.test for above in tree.ancestors(node) if isinstance(above, ast.If | ast.While)]
    return any(
        isinstance(part, ast.Attribute) and part.attr == "is_leaf"
        for whole in (node, *around)
        for part in ast.walk(whole)
    )


def _finding(record: Record, read: GradRead, call: BackwardCall, made: Site) -> Finding:
    index = lookup(record)
    names = [row.name for row in index.bindings_of[read.tensor] if row.moment <= read.moment]
    read_as = site_of(record, read.site).reads
    name = read_as[0] if read_as else names[-1] if names else "this tensor"
    node = statement(record, made)
    value = value_of(node)
    region = region_in(record, made.source, value) if value is not None else None
    how = outermost(value)
    step = training_step_of(record, read.moment)
    related = [Related(message=f"`.grad` of `{name}` is read here and is None", location=location(record, read.site))]
    if call.site is not None:
        passed = f"this backward call passed its gradient through `{name}` and kept none"
        related.insert(0, Related(message=passed, location=location(record, call.site)))
    return Finding(
        rule=rule_name(RULE),
        level=level_at(record, read.site) or RULE.severity,
        confidence=RULE.confidence,
        message=f"`{name}` is not a leaf: {how} made it, so `{name}.grad` stays None.\n"
        "A backward call stores gradients in leaves only; this one went on to what the tensor was made from.\n"
        "Flag the tensor after its last operation, or call `retain_grad()` before the backward call.",
        location=location(record, made.site, region),
        related=tuple(related),
        evidence={
            "binding": name,
            "tensor": read.tensor,
            "is_leaf": False,
            "retains_grad": False,
            "grad": None,
            "backward_call": call.call,
            "read_line": site_of(record, read.site).line,
        },
        fixes=tuple(_fixes(record, made, node, value, names)),
        occurrences=Occurrences(first_step=step, last_step=step),
        subject=Subject(facts=(("tensor", read.tensor), ("call", call.call)), moment=read.moment),
    )


def _finding_of_test(record: Record, number: int, reads: list[tuple[GradRead, BackwardCall]]) -> Finding:
    read, call = reads[0]
    resting = resting_retention(record)
    site = site_of(record, number)
    name = site.reads[0] if site.reads else called(record, read.tensor)
    return told(
        record,
        RULE,
        number,
        (
            f"`{name}` is not a leaf, so `{name}.grad` is None at each of the {len(reads)} reads here.",
            "The program passes over it each time: what it would do with the gradient never runs.",
            "Call `retain_grad()` on the tensor before the backward call, or read the gradient of a leaf."
            if resting is None
            else f"Line {site_of(record, resting).line} can keep the gradient, and did not in this run.",
        ),
        binding=name,
        moments=[row.moment for row, _call in reads],
        related=(
            (f"`{name}` is made here", lookup(record).tensors[read.tensor].site),
            ("this backward call passed its gradient through", call.site),
            ("this can keep the gradient", resting),
        ),
        evidence={"is_leaf": False, "retains_grad": False, "grad": None, "reads": len(reads)},
        tensors=sorted({row.tensor for row, _call in reads})[:16],
        calls=[call.call],
        level=None if resting is None else "note",
    )


def _fixes(
    record: Record, made: Site, node: ast.stmt | None, value: ast.expr | None, names: list[str]
) -> Iterator[Fix]:
    flagged = _flagged_factory(value)
    if flagged is not None and value is not None:
        removed = without_keyword(record, made, flagged, "requires_grad")
        region = region_in(record, made.source, value)
        if removed is not None:
            added = insertion(record, made, region.end_line, region.end_col, ".requires_grad_()")
            yield Fix(title="Require grad after the move", safety="unsafe", edits=(removed, added))
            return
    # a name that its own statement reads is carried from turn to turn: keeping each turn's gradient mends nothing
    bound = [name for name in names if name in made.targets and name not in made.reads]
    if bound and node is not None and value is not None:
        added = line_after(record, made, node, f"{bound[0]}.retain_grad()")
        if added is not None:
            yield Fix(title=f"Keep the gradient of `{bound[0]}`", safety="safe", edits=(added,))


def _flagged_factory(value: ast.expr | None) -> ast.Call | None:
    """The call that flags a tensor at the start of a chain of methods: `torch.ones(3, requires_grad=True).to(d)`."""
    inner = value
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        given = keyword(inner, "requires_grad")
        if given is not None and isinstance(given.value, ast.Constant) and given.value.value is True:
            return inner if inner is not value else None
        inner = inner.func.value
    return None
