"""BP602 graph-break-no-grad: trained parameters only ever run under `no_grad`.

What it finds:
    Parameters that an optimizer steps on are used under `no_grad`, `inference_mode` or `set_grad_enabled(False)`, and
    what comes out goes into the loss. No backward call of the run reaches them. The finding stands at the `with`, a
    caller's too, or at the decorator; of a function that others call for its value alone, at the one call in the loss.
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from backprobe.rules.analysis.graph.break_findings import breaks_of, replaced, told_break, without_line
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.training_modes import parameters_in
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import Function, names, scope_of, target_names
from backprobe.rules.analysis.source.syntax import Tree, site_at, statement_at, trees
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding import Fix, Related
from backprobe.rules.framework.locations import location
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Site
    from backprobe.rules.analysis.graph.breaks import Break
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="graph-break-no-grad",
    code="BP602",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
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
        calls = _calls(record, one)
        if calls is not None and len(calls.in_loss) == 1 and calls.others:
            yield _finding_used(record, one, calls.in_loss[0], calls.function)
            continue
        yield told_break(
            record,
            RULE,
            one,
            f"`{one.lost}` runs under {one.ending.how}: what it gives to the loss is cut off from {{who}}.",
            f"Take {one.ending.how} away here; or, if that is meant, freeze what runs under it and leave it out of the "
            "optimizer.",
            [] if _is_left_alone(record, one) or (calls is not None and calls.others) else [_fix(record, one)],
        )


def _finding_used(record: Record, one: Break, site: Site, function: str) -> Finding:
    """At the call in the loss: elsewhere the function is called for its value alone, and gradients are off for that."""
    finding = told_break(
        record,
        RULE,
        one,
        f"`{function}` runs `{one.lost}` under {one.ending.how}: what it gives to the loss is cut off from {{who}}.",
        f"Compute `{one.lost}` here with gradients; other calls want its value alone.",
    )
    off = Related(message="gradients are off here", location=finding.location)
    return replace(finding, location=location(record, site.site), related=(off, *finding.related), fixes=())


@dataclass(frozen=True, slots=True)
class _Calls:
    """Of a function without gradients: the statements that call it for the loss, and those for its value alone."""

    function: str
    in_loss: list[Site]
    others: list[Site]


def _calls(record: Record, one: Break) -> _Calls | None:
    """Those of a function that has the decorator, or returns from inside the `with`; None if one is not known."""
    tree = trees(record)[one.source]
    item = tree.parents.get(one.ending.node)
    block = tree.parents.get(item) if isinstance(item, ast.withitem) else item
    function = block if isinstance(block, Function) else scope_of(tree, one.ending.node)
    returns = (part for part in ast.walk(block or ast.Pass()) if isinstance(part, ast.Return))
    if not isinstance(function, Function) or not any(scope_of(tree, part) is function for part in returns):
        return None
    index = lookup(record)
    made = {index.nodes[node].site for call in one.calls for node in reaches(record)[call].ran}
    walked = {statement_at(record, site) for site in made if site is not None}
    found = _Calls(function.name, [], [])
    for file in names(record).values():
        for call in file.calls.get(function.name, ()):
            node = next((above for above in file.tree.ancestors(call) if isinstance(above, ast.stmt)), None)
            place = None if node is None else site_at(record, node)
            if node is None or place is None:
                return None
            is_walked = node in walked or _is_read_in(file.tree, node, walked)
            (found.in_loss if is_walked else found.others).append(place)
    return found


def _is_read_in(tree: Tree, node: ast.stmt, walked: set[ast.stmt | None]) -> bool:
    """What a statement binds is read by name in one of these statements of the same function, further down.

    Or what other assignments between make of it: `turned = embedded.t()`.
    """
    bound = {name for target in getattr(node, "targets", ()) for name in target_names(target)}
    scope = scope_of(tree, node)
    below = (one for one in ast.walk(scope) if isinstance(one, ast.stmt) and one.lineno > node.lineno)
    for one in sorted(below, key=lambda one: one.lineno):
        is_read = (one in walked or isinstance(one, ast.Assign)) and scope_of(tree, one) is scope
        if is_read and any(isinstance(part, ast.Name) and part.id in bound for part in ast.walk(one)):
            if one in walked:
                return True
            bound |= {name for target in getattr(one, "targets", ()) for name in target_names(target)}
    return False


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
