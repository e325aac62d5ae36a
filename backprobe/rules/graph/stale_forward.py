"""BP310 stale-forward: every step walks a forward pass that was computed before the first one.

What it finds:
    Backward calls of one statement, with an optimizer's steps between them, that come to a trained parameter only
    through nodes which the first of them had walked already: the graph is retained, or needs no saved tensors. Or LBFGS
    calls a closure several times in one step, and its backward calls do so. The finding stands at the statement that
    made the value which all of them share.

Why it matters:
    The gradient is that of the parameters as they were at the first step. The loss does not change, or only with what
    is computed anew, and training goes on in one direction. Nothing raises as long as no saved tensor was written.

What PyTorch does:
    A graph stands for the values that it was computed from. `retain_graph=True` lets a second backward call walk it;
    whether parameters moved meanwhile is seen only where a saved tensor was changed in place. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(12, 4), torch.randint(0, 2, (12,))
    logits = model(x)  # <- here
    for _ in range(4):
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(12, 4), torch.randint(0, 2, (12,))
    for _ in range(4):
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the parts of one gradient, and one step for all of them
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 6, 4):
        out = model(x)
        optimizer.zero_grad()
        for column in range(3):
            out[:, column].pow(2).mean().backward(retain_graph=column < 2)
        optimizer.step()

Near miss: what is computed once is a constant
    import torch
    from torch import nn

    torch.manual_seed(0)
    reference, model = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 4)
    with torch.no_grad():
        goal = reference(x)
    for _ in range(4):
        optimizer.zero_grad()
        (model(x) - goal).pow(2).mean().backward()
        optimizer.step()

Near miss: a closure computes its loss each time
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)
    x, y = torch.randn(12, 4), torch.randn(12, 2)

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)

Blind spots:
    Fewer than three backward calls, or two in a step of LBFGS; a parameter that is used both in the old graph and anew;
    an optimizer of the program's own that calls its closure several times.

Source:
    `retain_graph` in torch.Tensor.backward's documentation; observed with torch 2.13. Three calls: to be repeated takes
    two, to have a shape three.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.carried_graphs import Carried, carried_between
from backprobe.rules.analysis.graph.reach import first_numbers, leading_to, numbered, reaches
from backprobe.rules.analysis.graph.retained_values import LEAST
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import capital, together
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import site_of, statement_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="stale-forward",
    code="BP310",
    since="0.2",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("backward", "node", "binding", "optimizer"),
    refines=("needless-retain-graph",),
)

_SEVERAL: Final = "LBFGS"
"""The optimizer that evaluates its closure several times in one step, and moves its parameters in between."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that calls backward and value that its calls share."""
    by_site: defaultdict[int, list[BackwardCall]] = defaultdict(list)
    for call in record.backward_calls:
        if call.site is not None and call.accumulate_grad and call.outcome == "finished":
            by_site[call.site].append(call)
    for calls in by_site.values():
        leaves = _stale(record, calls) if len(calls) >= LEAST else ()
        shared = _shared(record, calls) if leaves else None
        if shared is not None:
            yield _finding(record, calls, leaves, shared)
            continue
        for inside, moved in _in_one_step(record, calls):
            leaves = _stale(record, inside, moved)
            shared = _shared(record, inside) if leaves else None
            if shared is not None:
                yield _finding(record, inside, leaves, shared, in_closure=True)
                break


def _in_one_step(
    record: Record, calls: Sequence[BackwardCall]
) -> Iterator[tuple[Sequence[BackwardCall], frozenset[int]]]:
    """Calls of a statement in the closure of one step of LBFGS, which moves what it holds after each of them."""
    held = {row.optimizer: frozenset(one.tensor for one in row.tensors) for row in record.optimizers}
    kinds = {row.optimizer: row.cls for row in record.optimizers}
    place = site_of(record, calls[0].site or 0)
    if len(calls) < 2 or place.loop_line is not None:
        return  # calls of one turn each share what that turn computed
    function = place.function.rpartition(".")[2]
    start, named = 0, dict[int | None, bool]()
    for moment, optimizer, site in _steps(record):
        end = bisect_right(calls, moment, key=lambda call: call.moment_before)
        inside, start = calls[start:end], end
        if optimizer is not None and kinds.get(optimizer) == _SEVERAL and len(inside) > 1:
            if site not in named:
                named[site] = _is_handed(statement_at(record, site), function)
            if named[site]:
                yield inside, held[optimizer]


def _is_handed(node: ast.stmt | None, function: str) -> bool:
    """A statement gives the function to `step`, as it is or inside of another."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Call) and last_name(part.func) == "step":
            given = [*part.args, *(one.value for one in part.keywords)]
            every = [inner for one in given for inner in ast.walk(one)]
            if any(isinstance(one, ast.expr) and last_name(one) == function for one in every):
                return True
    return False


def _stale(record: Record, calls: Sequence[BackwardCall], moved: frozenset[int] | None = None) -> tuple[int, ...]:
    """The leaves that are stepped between all of these calls, and used in nodes of the first one alone.

    Args:
        moved: The leaves that are known to move between the calls. None: those that are stepped between.
    """
    reached = [reaches(record)[call.call] for call in calls]
    first, last = reached[0], reached[-1]
    common = first.leaves & last.leaves & (_stepped(record, calls[0], calls[1]) if moved is None else moved)
    known = first_numbers(record)
    before = numbered(first.met, known)
    kept = [leaf for leaf in common if numbered(_users(record, leaf) & last.met, known) <= before]
    if not kept:
        return ()  # as nearly always: every step computes its own graph
    stepped = [_stepped(record, one, other) for one, other in pairwise(calls)] if moved is None else []
    common = frozenset(kept).intersection(*(reach.leaves for reach in reached), *stepped)
    used = {leaf: [numbered(_users(record, leaf) & reach.met, known) for reach in reached] for leaf in common}
    return tuple(sorted(leaf for leaf, uses in used.items() if all(use and use <= before for use in uses)))


def _stepped(record: Record, first: BackwardCall, second: BackwardCall) -> frozenset[int]:
    """The tensors whose optimizer steps between two calls."""
    steps = _steps(record)
    start = bisect_left(steps, first.moment_before, key=lambda step: step[0])
    end = bisect_right(steps, second.moment_before, key=lambda step: step[0])
    ran = {optimizer for _moment, optimizer, _site in steps[start:end]}
    return frozenset(leaf for leaf, held in in_optimizers(record).items() if ran.intersection(held))


@table
def _steps(record: Record) -> list[tuple[int, int | None, int | None]]:
    """The steps of all optimizers: when, whose, and at which statement."""
    steps = [(row.moment, row.optimizer, row.site) for row in record.optimizer_events if row.kind == "step"]
    return sorted(steps, key=lambda step: step[0])


def _users(record: Record, leaf: int) -> frozenset[int]:
    """The nodes that hand the leaf's gradient to it."""
    ends = _ends(record).get(leaf, ())
    return frozenset(node for end in ends for node in leading_to(record).get((end, 0), ()))


@table
def _ends(record: Record) -> dict[int, list[int]]:
    """The nodes that store the gradient of each leaf."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in record.nodes:
        if row.variable is not None:
            found[row.variable].append(row.node)
    return found


def _shared(record: Record, calls: Sequence[BackwardCall]) -> Carried | None:
    """The youngest value from before the first call that the last one walks which numbers its nodes as that did."""
    first, nodes = calls[0], lookup(record).nodes
    for last in reversed(calls[1:]):
        both = reaches(record)[first.call].met & reaches(record)[last.call].met
        if any(nodes[node].variable is None for node in both):
            return carried_between(record, first, last, both)
    return None


def _finding(
    record: Record, calls: Sequence[BackwardCall], leaves: tuple[int, ...], shared: Carried, *, in_closure: bool = False
) -> Finding:
    """What the calls share.

    Args:
        in_closure: All of them are of one step, which evaluates its closure several times.
    """
    turns, turn = ("closure calls of one step", "evaluation") if in_closure else ("steps", "step")
    who = together(record, leaves)
    made = lookup(record).bindings_of[shared.tensor][0].site
    return told(
        record,
        RULE,
        made,
        (
            f"`{shared.name}` is computed once, and all {len(calls)} {turns} walk its graph.",
            f"{capital(who)} moved meanwhile: the gradient is that of the values before the first {turn}.",
            f"Compute `{shared.name}` "
            + ("in the closure" if in_closure else "in each step")
            + ", from the parameters as they are then, and let the graph go.",
        ),
        binding=shared.name,
        moments=[call.moment_before for call in calls],
        related=(
            (f"each {turn} uses `{shared.name}` here", shared.site),
            ("this backward call walks the old graph again", calls[0].site),
        ),
        evidence={"calls": [call.call for call in calls[:16]], "leaves": [*leaves[:16]]},
        tensors=[shared.tensor, *leaves],
        calls=[call.call for call in calls],
    )
