"""BP602 graph-break-no-grad: trained parameters only ever run under `no_grad`.

What it finds:
    Parameters that an optimizer steps on are used under `no_grad`, `inference_mode` or `set_grad_enabled(False)`, and
    what comes out goes into the loss. No backward call of the run reaches them. The finding stands at the `with`, a
    caller's too, or at the decorator.
    So it is of one term of a loss whose other terms train.

Why it matters:
    The forward pass is right, the loss may even fall, and the parameters behind the cut never learn anything.

What PyTorch does:
    Under `no_grad` results have no history, whatever their inputs require. Nothing warns. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        with torch.no_grad():  # <- here
            code = encoder(torch.randn(8, 6))
        loss = head(code).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        code = encoder(torch.randn(8, 6))
        loss = head(code).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a frozen encoder, which no optimizer holds
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        with torch.no_grad():
            code = encoder(torch.randn(8, 6))
        loss = head(code).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a target network is written under no_grad from the one that is trained
    import copy

    import torch
    from torch import nn

    online = nn.Linear(4, 2)
    target = copy.deepcopy(online)
    optimizer = torch.optim.SGD(online.parameters(), lr=0.1)
    for _ in range(3):
        state = torch.randn(8, 4)
        with torch.no_grad():
            goal = target(state).max(1).values
        loss = (online(state).max(1).values - goal).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(target.parameters(), online.parameters()):
                kept.lerp_(new, 0.1)

Blind spots:
    A mode that a plain call switched off and nobody switched on again is BP608's.

Source:
    torch.no_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.break_findings import breaks_of, replaced, told_break, without_line
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.training_modes import parameters_in
from backprobe.rules.analysis.source.syntax import trees
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.graph.breaks import Break
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="graph-break-no-grad",
    code="BP602",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("backward", "binding", "module", "optimizer", "grad-life", "raised"),
    explains=(
        "requires-grad-forced",
        "root-without-history",
        "step-without-gradient",
        "grad-read-when-none",
        "gradient-not-derivative",
    ),
    refines=("parameter-never-used", "gradient-never-arrives"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per `with` or decorator under which trained parameters run."""
    for one in breaks_of(record, "no-grad"):
        yield told_break(
            record,
            RULE,
            one,
            f"`{one.lost}` runs under {one.ending.how}: what it gives to the loss is cut off from {{who}}.",
            f"Take {one.ending.how} away here; or, if that is meant, freeze what runs under it and leave it out of the "
            "optimizer.",
            [] if _is_left_alone(record, one) else [_fix(record, one)],
        )


def _is_left_alone(record: Record, one: Break) -> bool:
    """Gradients in there would mend nothing, or too much."""
    return _runs_others(record, one) or _trains_others(record, one) or _gives_choices(record, one)


_CHOICES: Final = frozenset({"argmax", "argsort", "bernoulli", "multinomial", "sample", "topk"})


def _gives_choices(record: Record, one: Break) -> bool:
    """The block draws or picks what leaves it: through a choice no gradient comes back, whatever is recorded."""
    tree = trees(record)[one.source]
    item = tree.parents.get(one.ending.node)
    block = tree.parents.get(item) if isinstance(item, ast.withitem) else item
    calls = (part.func for part in ast.walk(block or ast.Pass()) if isinstance(part, ast.Call))
    return any(isinstance(func, ast.Attribute) and func.attr in _CHOICES for func in calls)


def _runs_others(record: Record, one: Break) -> bool:
    """Under the same `with`, modules run whose parameters no optimizer holds: for them gradients are off on purpose."""
    block = trees(record)[one.source].parents.get(trees(record)[one.source].parents.get(one.ending.node, ast.Pass()))
    if not isinstance(block, ast.With):
        return False
    lines = range(block.lineno, (block.end_lineno or block.lineno) + 1)
    sites = {row.site for row in record.sites if row.source == one.source and row.line in lines}
    used = {one for call in record.module_calls if call.site in sites for one in parameters_in(record, call)}
    return not used <= in_optimizers(record).keys()


def _trains_others(record: Record, one: Break) -> bool:
    """The backward calls reach leaves, and no optimizer holds one of them: it holds the wrong model."""
    reached = {leaf for call in one.calls for leaf in reaches(record)[call].leaves}
    return bool(reached) and reached.isdisjoint(in_optimizers(record))


def _fix(record: Record, one: Break) -> Fix:
    """A decorator is taken away; a `with` switches gradients on, so that its body need not move."""
    above = trees(record)[one.source].parents.get(one.ending.node)
    if isinstance(above, ast.withitem):
        edit = replaced(record, one, one.ending.node, "torch.enable_grad()")
        return Fix(title="Run it with gradients", safety="unsafe", edits=(edit,))
    edit = without_line(record, one, one.ending.node)
    return Fix(title=f"Take the decorator {one.ending.how} away", safety="unsafe", edits=(edit,))
