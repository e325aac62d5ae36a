"""BP877 hook-binds-late: hooks that are made in a loop all use the last value of the loop's variable.

What it finds:
    A lambda or a function that is made in a loop is registered as a hook on several tensors or modules, one in each
    turn, and reads a name that the loop binds anew. Nothing runs until the loop has gone on, so each of them reads what
    the last turn left there. The finding stands at the registration.

Why it matters:
    All layers get the factor, the name or the mask of the last one. Nothing raises, and the last layer is right.

What PyTorch does:
    It calls the hook in a later backward pass or call. Python looks up a name of an enclosing scope when the function
    runs, not when it is made. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    for depth, parameter in enumerate(net.parameters()):
        factor = 0.5 ** (3 - depth)
        parameter.register_hook(lambda grad: grad * factor)  # <- here
    net(torch.ones(4, 3)).square().mean().backward()

Use instead:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    for depth, parameter in enumerate(net.parameters()):
        factor = 0.5 ** (3 - depth)
        parameter.register_hook(lambda grad, factor=factor: grad * factor)
    net(torch.ones(4, 3)).square().mean().backward()

Near miss: a function makes each hook, and keeps the value that it was given
    import torch
    from torch import nn

    def scaled(factor):
        return lambda grad: grad * factor

    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    for depth, parameter in enumerate(net.parameters()):
        factor = 0.5 ** (3 - depth)
        parameter.register_hook(scaled(factor))
    net(torch.ones(4, 3)).square().mean().backward()

Near miss: each hook runs in its own turn
    import torch

    weight, seen = torch.ones(3, requires_grad=True), []
    for step, x in enumerate(torch.ones(4, 3)):
        out = weight * x
        out.register_hook(lambda grad: seen.append((step, grad.norm().item())))
        out.sum().backward()

Near miss: the same factor in each turn
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    for parameter in net.parameters():
        factor = 0.5
        parameter.register_hook(lambda grad: grad * factor)
    net(torch.ones(4, 3)).square().mean().backward()

Blind spots:
    A function that is handed on to the registration under another name, as an element of a list. What the loop reads of
    its variable may be the same in each turn: the values of names that hold no tensor are not in a record.

Source:
    "Why do lambdas defined in a loop with different values all return the same result?" in Python's programming FAQ.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.hook_code import hook_function, hook_lambda
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import Function, parameters_of, target_names
from backprobe.rules.analysis.source.syntax import Tree, site_of, tree_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Hook, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="hook-binds-late",
    code="BP877",
    since="0.2",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("hook", "backward", "site"),
)

LEAST: Final = 2
"""Hooks that read one name: of one alone, the last value is its own."""

Loop = ast.For | ast.AsyncFor | ast.comprehension
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_METHODS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that registers."""
    groups: defaultdict[tuple[object, ...], list[Hook]] = defaultdict(list)
    for row in record.hooks:
        if row.site is not None and row.moment is not None and (row.tensor is not None or row.module is not None):
            groups[row.site, row.callable, row.line].append(row)
    for rows in groups.values():
        late = _late(record, rows) if len(rows) >= LEAST else None
        if late is not None:
            yield _finding(record, *late)


def _late(record: Record, rows: list[Hook]) -> tuple[str, list[Hook]] | None:
    """The first name that hooks read too late, and those of them that read one value."""
    first = rows[0]
    tree = tree_of(record, site_of(record, first.site or 0))
    made = hook_function(record, first) or hook_lambda(record, first)
    if made is None or tree is None or made not in tree.parents:
        return None
    read = _free_names(made)
    for depth, loop in enumerate(_loops(tree, made)):
        bound = sorted(read & _changing(loop))
        if not bound:
            continue
        for together in _unrun(record, rows, tree, loop):
            several = len({(row.tensor, row.module) for row in together}) >= LEAST
            if several and (depth == 0 or _turns_between(record, loop, together)):
                return bound[0], together
    return None


def _free_names(made: ast.AST) -> set[str]:
    """The names that a function reads and does not bind itself; what stands in its defaults is read when it is made."""
    if isinstance(made, ast.Lambda):
        given, body = made.args, [made.body]
    elif isinstance(made, Function):
        given, body = made.args, made.body
    else:
        return set()
    own = {one.arg for one in ast.walk(given) if isinstance(one, ast.arg)}
    own |= set(parameters_of(made)) if isinstance(made, Function) else set()
    parts = [part for one in body for part in ast.walk(one)]
    own |= {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    own |= {part.arg for part in parts if isinstance(part, ast.arg)}
    return {part.id for part in parts if isinstance(part, ast.Name)} - own


def _loops(tree: Tree, made: ast.AST) -> Iterator[Loop]:
    """The loops around a function in the scope that it is made in, the innermost first."""
    for above in tree.ancestors(made):
        if isinstance(above, _METHODS):
            return
        if isinstance(above, ast.For | ast.AsyncFor):
            yield above
        elif isinstance(above, _COMPREHENSIONS):
            yield from reversed(above.generators)


def _changing(loop: Loop) -> set[str]:
    """The names that a loop binds anew in each turn: its targets, and what its body makes of them or counts."""
    names = set(target_names(loop.target))
    if isinstance(loop, ast.comprehension):
        return names
    own = [part for one in loop.body for part in _own_parts(one)]
    for _ in range(len(own)):
        found = set(names)
        for part in own:
            if isinstance(part, ast.AugAssign):
                found |= {part.target.id} if isinstance(part.target, ast.Name) else set()
            elif isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None and _reads(part.value, names):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                parts = (one for target in targets for one in ast.walk(target))
                found |= {one.id for one in parts if isinstance(one, ast.Name) and _is_stored(one)}
            elif isinstance(part, ast.For | ast.AsyncFor) and _reads(part.iter, names):
                found |= set(target_names(part.target))
        if found == names:
            break
        names = found
    return names


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """A statement with its parts, without the bodies of functions that it makes."""
    yield node
    if not isinstance(node, _METHODS):
        for part in ast.iter_child_nodes(node):
            yield from _own_parts(part)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _reads(value: ast.AST, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(value))


@table
def _runs(record: Record) -> tuple[int, ...]:
    """The moments at which hooks may run: backward calls, and statements that call modules."""
    sites = {call.site for call in record.module_calls}
    calls = [row.moment for row in record.moments if row.site in sites]
    return tuple(sorted([*calls, *(call.moment_before for call in record.backward_calls)]))


def _unrun(record: Record, rows: list[Hook], tree: Tree, loop: Loop) -> Iterator[list[Hook]]:
    """Hooks that one run of a loop registers one after another before any of them runs, and that run later."""
    ordered = sorted(rows, key=lambda row: row.moment or 0)
    runs, together = _runs(record), [ordered[0]]
    starts: list[list[Hook]] = [together]
    for one, other in pairwise(ordered):
        since, until = one.moment or 0, other.moment or 0
        ran = bisect_right(runs, since) < bisect_right(runs, until)
        apart = ran or (one.removed is not None and one.removed <= until)
        if apart or not _stays_inside(record, since, until, loop, tree):
            starts.append([])
        starts[-1].append(other)
    for found in starts:
        last = found[-1].moment or 0
        after = next(iter(runs[bisect_right(runs, last) :][:1]), None)
        kept = [row for row in found if after is not None and (row.removed is None or row.removed >= after)]
        if len(kept) >= LEAST:
            yield kept


def _stays_inside(record: Record, since: int, until: int, loop: Loop, tree: Tree) -> bool:
    """The program did not leave the loop between two moments."""
    above = (one for one in tree.ancestors(loop) if isinstance(one, ast.stmt))
    around = loop if isinstance(loop, ast.stmt) else next(above)
    here = site_of(record, record.moments[until].site or 0)
    lines = range(around.lineno, (around.end_lineno or around.lineno) + 1)
    sites = (record.moments[at].site for at in range(since, until + 1))
    inside = (site_of(record, one) for one in sites if one is not None)
    return all(one.source == here.source and one.function == here.function and one.line in lines for one in inside)


def _turns_between(record: Record, loop: Loop, together: list[Hook]) -> bool:
    """An outer loop went on to another turn between the first and the last of the registrations."""
    if isinstance(loop, ast.comprehension):
        return True
    here = site_of(record, together[0].site or 0)
    first, last = together[0].moment or 0, together[-1].moment or 0
    sites = {record.moments[at].site for at in range(first + 1, last)} - {None}
    found = (site_of(record, one) for one in sites if one is not None)
    return any(one.line == loop.lineno and one.source == here.source for one in found)


def _finding(record: Record, name: str, rows: list[Hook]) -> Finding:
    first = rows[0]
    runs = [run for run in _runs(record) if run > (rows[-1].moment or 0)]
    run = lookup(record).moments[runs[0]].site if runs else None
    what = "tensors" if first.tensor is not None else "modules"
    return told(
        record,
        RULE,
        first.site or 0,
        (
            f"`{name}` is looked up when the hook runs: by then the loop has left its last value there.",
            f"{len(rows)} hooks were registered on different {what} before any ran, and all of them read that value.",
            f"Bind it when the hook is made, by a default: `{name}={name}`; or make the hook in a function.",
        ),
        binding=name,
        moments=[row.moment or 0 for row in rows],
        related=(("they run here, after the loop", run),),
        evidence={"name": name, "hooks": len(rows), "callable": first.callable},
        tensors=[row.tensor for row in rows if row.tensor is not None],
    )
