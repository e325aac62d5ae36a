"""BP325 missing-create-graph: a gradient that has no history is differentiated, or is part of what is.

What it finds:
    `autograd.grad` was called without `create_graph=True`, and what it returned is differentiated again, or goes by
    arithmetic into a value that is. Or what an optimizer steps on is reached through that gradient alone, and gets
    none. The finding stands at that first call; related is where the gradient is used.

Why it matters:
    A gradient without history is a constant. A penalty made of it adds a number to the loss and nothing to any
    gradient: training runs, and ignores the penalty. Where nothing else has history, the second call raises.

What PyTorch does:
    `autograd.grad` returns tensors with `requires_grad=False` unless `create_graph=True` records its backward pass. Of
    a sum with a constant only the other part is differentiated. `RuntimeError: element 0 of tensors does not require
    grad` is what a second `autograd.grad` over such a result alone raises. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    point = torch.ones(3, requires_grad=True)
    value = (weight * point**2).sum()
    (slope,) = torch.autograd.grad(value, point, retain_graph=True)  # <- here
    penalty = (slope.norm() - 1) ** 2
    loss = value + 10 * penalty
    loss.backward()

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    point = torch.ones(3, requires_grad=True)
    value = (weight * point**2).sum()
    (slope,) = torch.autograd.grad(value, point, create_graph=True)
    penalty = (slope.norm() - 1) ** 2
    loss = value + 10 * penalty
    loss.backward()

Near miss: an adversarial example goes through the model
    import torch

    model = torch.nn.Linear(3, 1)
    clean = torch.ones(2, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(model(clean).sum(), clean)
    attacked = clean + 0.1 * slope.sign()
    loss = model(attacked).pow(2).mean()
    loss.backward()

Near miss: a step of Langevin dynamics
    import torch

    energy = torch.nn.Linear(3, 1)
    sample = torch.zeros(2, 3)
    for _ in range(3):
        sample = sample.detach().requires_grad_()
        (slope,) = torch.autograd.grad(energy(sample).sum(), sample)
        sample = sample - 0.1 * slope
    loss = energy(sample).mean()
    loss.backward()

Near miss: first-order MAML
    import torch

    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(2):
        (slope,) = torch.autograd.grad((weight**2).sum(), weight)
        adapted = weight - 0.1 * slope
        optimizer.zero_grad()
        (adapted**3).sum().backward()
        optimizer.step()

Near miss: a step on fast weights
    import torch

    weight = torch.ones(3, requires_grad=True)
    fast = weight.clone()
    for _ in range(2):
        (slope,) = torch.autograd.grad((fast * 2).pow(2).mean(), fast)
        fast = fast - 0.1 * slope
    outer = (fast * 3).pow(2).mean()
    outer.backward()

Near miss: the gradient is set by hand
    import torch

    weight = torch.ones(3, requires_grad=True)
    (slope,) = torch.autograd.grad((weight**2).sum(), weight)
    weight.grad = slope

Near miss: the gradient is a weight on purpose
    import torch

    point = torch.ones(3, requires_grad=True)
    losses = point**2
    (slope,) = torch.autograd.grad(losses.sum(), point, retain_graph=True)
    weights = slope.abs().detach()
    loss = (weights * losses).sum()
    loss.backward()

Near miss: the gradient is only looked at
    import torch

    point = torch.ones(3, requires_grad=True)
    value = (point**2).sum()
    (slope,) = torch.autograd.grad(value, point, retain_graph=True)
    print(slope.norm().item())
    value.backward()

Blind spots:
    A gradient taken from `.grad` after `backward()` and used in a loss is not seen. A gradient that goes through a
    function of another file, or through a module, before it meets the loss is left alone. A tensor of the shape of
    what was differentiated, made from that and its gradient, is taken for a step of gradient descent.

Source:
    torch.autograd.grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.differing_callers import argument_behind, call_of_function, differing_caller
from backprobe.rules.analysis.gradients.returned_gradients import Flow, flow_of, lost_with
from backprobe.rules.analysis.graph.reach import between, reaches
from backprobe.rules.analysis.graph.roots import raised_calls
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.arithmetic import dotted, goes_in, summands
from backprobe.rules.analysis.source.expressions import keyword, replacement, with_keyword
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import is_same_statement, region_in, site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.tensors.parents import is_detached, operands_below, undetached_from
from backprobe.rules.analysis.training.steps import state_at, training_step_of
from backprobe.rules.analysis.training.trained_parameters import trained
from backprobe.rules.framework.finding import Finding, Fix, Occurrences, Region, Related, Subject, rule_name
from backprobe.rules.framework.locations import location
from backprobe.rules.framework.rule import Level, Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Binding, Operation, Record, Site

RULE = Rule(
    name="missing-create-graph",
    code="BP325",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="safe",
    needs=("backward", "binding", "parents", "node", "raised"),
    explains=("gradient-not-derivative", "grad-of-unused-input", "step-without-gradient", "grad-read-when-none"),
)

MAX_CALLS: Final = 20
"""Calls of one site that are judged: what they return is followed through all later bindings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """Where a gradient without history is differentiated.

    Attributes:
        site: The statement that takes it in. binding: the name that the gradient, or what was made of it, has there.
        level: An uncaught exception makes it an error.
        leaves: What is trained through the gradient alone, and so never gets one.
    """

    site: int
    binding: str
    level: Level
    raised: bool
    leaves: tuple[int, ...] = ()


def check(record: Record) -> Iterator[Finding]:
    """One finding per `autograd.grad` whose result is differentiated although it has no history."""
    judged: Counter[int] = Counter()
    for call in record.backward_calls:
        if call.accumulate_grad or call.create_graph or call.outcome != "finished" or call.site is None:
            continue
        judged[call.site] += 1
        if judged[call.site] > MAX_CALLS:
            continue
        flow = flow_of(record, call)
        constants = flow.constants | _constants(record, call)
        use = _differentiated_again(record, call, constants) or _idle(record, call, constants)
        if use is None and not _is_slope_of_constants(record, call):
            use = _reaches_root(record, call, constants, flow)
        if use is not None and (use.raised or use.leaves or not _is_weight(record, call, use)):
            yield _finding(record, call, site_of(record, call.site), use, constants)


def _idle(record: Record, call: BackwardCall, constants: dict[int, str]) -> _Use | None:
    """What an optimizer steps on is reached through the gradient alone: weights of examples, a learned loss."""
    found = [(leaf, one) for leaf, one in lost_with(record).items() if one.call == call.call]
    if not found:
        return None
    name, leaves = _first_name(constants), tuple(leaf for leaf, _one in found)
    return _Use(site=found[0][1].taken, binding=name, level=RULE.severity, raised=False, leaves=leaves)


def _is_slope_of_constants(record: Record, call: BackwardCall) -> bool:
    """What was differentiated depends on nothing but the inputs asked for, which are data: no one trains them.

    The slope of a frozen teacher or of a known density is a target, whatever is differentiated later.
    """
    leaves = reaches(record)[call.call].leaves
    asked = {root.tensor for root in call.inputs or ()}
    read = {row.tensor for row in record.grad_reads}
    return bool(leaves) and leaves <= asked and not leaves & (trained(record) | read)


def _is_weight(record: Record, call: BackwardCall, use: _Use) -> bool:
    """It scales what is differentiated later, and of what was differentiated for it nothing is walked again.

    Weights of examples that come from a loss on other data are such: they are meant as numbers.
    """
    node = statement(record, site_of(record, use.site))
    factors = [part for part in ast.walk(node) if isinstance(part, ast.BinOp)] if node is not None else []
    if not factors or any(not isinstance(part.op, ast.Mult) for part in factors):
        return False
    index, last = lookup(record), _last_walked(record)
    walked = (index.nodes.get(number) for number in reaches(record)[call.call].met)
    return not any(one is not None and one.variable is None and last[one.node] > call.call for one in walked)


@table
def _last_walked(record: Record) -> dict[int, int]:
    """The last call that met each node."""
    return {node: call.call for call in record.backward_calls for node in reaches(record)[call.call].met}


def _constants(record: Record, call: BackwardCall) -> dict[int, str]:
    """The untracked tensors that hold what the call returned, and what was made of them by arithmetic: with names."""
    known: dict[int, str] = {}
    after = call.moment_after if call.moment_after is not None else call.moment_before
    for binding in record.bindings:
        state = state_at(record, binding.tensor, binding.moment)
        if binding.moment < after or state is None or state.requires_grad or binding.tensor in known:
            continue
        if _is_returned(record, call, binding.tensor) or _takes_in(record, call, binding, known) is not None:
            known[binding.tensor] = binding.name
    return known


def _is_returned(record: Record, call: BackwardCall, tensor: int) -> bool:
    """It was made by the statement of the call, before the next call."""
    after = call.moment_after if call.moment_after is not None else call.moment_before
    again = (other.moment_before for other in record.backward_calls if other.call > call.call)
    until = next(again, record.moments[-1].moment + 1)
    row = lookup(record).tensors[tensor]
    return after <= row.moment < until and is_same_statement(record, row.site, call.site)


def _takes_in(record: Record, call: BackwardCall, binding: Binding, known: dict[int, str]) -> int | None:
    """The site at which a binding's value was made by arithmetic from a known tensor, with tracking on.

    That is its own statement, or the `return` of the function that gave the value.
    """
    index = lookup(record)
    tensor = index.tensors[binding.tensor]
    places = [(index.sites[binding.site], binding.function, binding.moment)]
    if tensor.site is not None and tensor.site != binding.site and index.sites[tensor.site].kind == "return":
        given = index.sites[tensor.site]
        places.append((given, given.function, tensor.moment))
    for site, function, moment in places:
        names = _names_of(record, known, function, moment, frozenset(site.reads))
        if names and index.moments[moment].grad_mode and goes_in(record, site, lambda part, n=names: _text(part) in n):
            return site.site
    own = index.sites[binding.site]
    regions = _calls_that_gave(record, call, binding, known)
    if (
        regions
        and index.moments[binding.moment].grad_mode
        and goes_in(record, own, lambda part: region_in(record, own.source, part) in regions)
    ):
        return binding.site
    return None


def _calls_that_gave(record: Record, call: BackwardCall, binding: Binding, known: dict[int, str]) -> frozenset[Region]:
    """The calls in a binding's statement that returned a constant, as in `loss = out + penalty(x)`."""
    return frozenset(
        Region(start_line=row.line, start_col=row.col, end_line=row.end_line, end_col=row.end_col)
        for row in _operations_at(record).get(binding.site, ())
        if row.tensor is not None
        and row.tensor in binding.parents
        and (row.tensor in known or _gives(record, call, row.tensor, known))
    )


def _gives(record: Record, call: BackwardCall, tensor: int, known: dict[int, str]) -> bool:
    """A tensor without a name is the returned gradient, or a `return` made it of a known one by arithmetic."""
    index = lookup(record)
    row = index.tensors[tensor]
    state = state_at(record, tensor, row.moment)
    if index.bindings_of[tensor] or row.site is None or state is None or state.requires_grad:
        return False
    site = index.sites[row.site]
    if site.kind != "return" or _is_returned(record, call, tensor):
        return site.kind == "return"
    names = _names_of(record, known, site.function, row.moment, frozenset(site.reads))
    return index.moments[row.moment].grad_mode and goes_in(record, site, lambda part: _text(part) in names)


@table
def _operations_at(record: Record) -> dict[int, list[Operation]]:
    """The operations that gave a tensor, by statement."""
    found: dict[int, list[Operation]] = {}
    for row in record.operations:
        if row.tensor is not None:
            found.setdefault(row.statement, []).append(row)
    return found


def _names_of(
    record: Record, known: dict[int, str], function: str, moment: int, read: frozenset[str]
) -> frozenset[str]:
    """Those of the names read in this function that hold a known tensor then, or a list with one in it."""
    found: set[str] = set()
    called = {row.name for tensor in known for row in lookup(record).bindings_of[tensor]}
    for name in {name for name in called if name in read or name.split("[")[0] in read}:
        rows = bindings_named(record)[name]
        at = bisect_left(rows, moment, key=lambda row: row.moment)
        before = next((row for row in reversed(rows[:at]) if row.function == function), None)
        if before is not None and before.tensor in known:
            found |= {name, name.split("[")[0]}
    return frozenset(found)


def _text(part: ast.AST) -> str | None:
    if isinstance(part, ast.Name | ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Load):
        return ast.unparse(part)
    return None


def _differentiated_again(record: Record, call: BackwardCall, constants: dict[int, str]) -> _Use | None:
    """A later call that raised because nothing in its root has a history, where that root holds a constant."""
    for raised in raised_as(record, "no-history", "input-without-grad"):
        later = lookup(record).calls.get(raised.call) if raised.call is not None else None
        if later is None or later.call <= call.call or later.site is None:
            continue
        if not lookup(record).moments[later.moment_before].grad_mode:
            continue  # nothing has a history there, whatever the earlier call recorded
        site = site_of(record, later.site)
        names = _names_of(record, constants, site.function, later.moment_before, frozenset(site.reads))
        if any(root.tensor in constants for root in later.roots) or names or _made_of_returned(record, call, later):
            return _Use(site=later.site, binding=_first_name(constants), level=level_of(record, raised), raised=True)
    return _by_an_input_of(record, call, constants)


def _by_an_input_of(record: Record, call: BackwardCall, constants: dict[int, str]) -> _Use | None:
    """A later call that raised over an input which it did not meet, and which this call, the last one to, did.

    The gradient of an inner step by the weights of its examples, or by its rate, goes through the step's own gradient.
    """
    for one in raised_calls(record, "unused-input"):
        at = one.raised.facts.get("index", "")
        inputs = one.call.inputs or ()
        asked = inputs[int(at)].tensor if at.isdecimal() and int(at) < len(inputs) else None
        if asked is None or one.call.site is None or one.call.call <= call.call:
            continue
        met = [row.call for row in record.backward_calls if asked in reaches(record)[row.call].leaves]
        if max((number for number in met if number < one.call.call), default=None) == call.call:
            level = level_of(record, one.raised)
            return _Use(site=one.call.site, binding=_first_name(constants), level=level, raised=True)
    return None


def _made_of_returned(record: Record, call: BackwardCall, later: BackwardCall) -> bool:
    """The root of the later call was made, with tracking on and nothing detached on the way, of what it returned."""
    index = lookup(record)
    waiting = [root.tensor for root in later.roots if root.tensor is not None]
    seen = set(waiting)
    while waiting:
        tensor = waiting.pop()
        row = index.tensors[tensor]
        state = state_at(record, tensor, row.moment)
        if state is None or state.requires_grad or not index.moments[row.moment].grad_mode:
            continue
        if _is_returned(record, call, tensor):
            return not is_detached(record, tensor)
        new = undetached_from(record, tensor) - seen
        seen |= new
        waiting += sorted(new)
    return False


def _reaches_root(record: Record, call: BackwardCall, constants: dict[int, str], flow: Flow) -> _Use | None:
    """A tracked value that took a constant in by arithmetic, from which no trained parameter lies before a root."""
    of_trained = any(root.tensor in trained(record) for root in call.inputs or ())
    for binding in record.bindings:
        state = state_at(record, binding.tensor, binding.moment)
        if state is None or not state.requires_grad:
            continue
        taken = flow.taken.get(binding.tensor)
        site = _takes_in(record, call, binding, constants) or (None if taken is None else taken.statement)
        # the gradient of weights scales losses and steps in many correct programs; added to a loss it does nothing
        added = of_trained and site == binding.site and _is_added(record, binding, constants)
        if site is None or _is_step(record, call, binding, taken) or (of_trained and not added):
            continue
        if not added and any(row in trained(record) for row in binding.parents):
            continue
        if _is_walked_plainly(record, binding.tensor):
            name = _first_name(constants)
            return _Use(site=site, binding=name, level=RULE.severity, raised=False)
    for row in flow.added:
        return _Use(site=row.statement, binding=_first_name(constants), level=RULE.severity, raised=False)
    return None if of_trained else _nameless_at_root(record, call, constants, flow)


def _nameless_at_root(record: Record, call: BackwardCall, constants: dict[int, str], flow: Flow) -> _Use | None:
    """The same of a tensor that never had a name: a helper returned it."""
    index = lookup(record)
    inputs = {root.tensor for root in call.inputs or ()}
    for tensor, row in flow.taken.items():
        operands = set(operands_below(record)[row.operation])
        if index.bindings_of[tensor] or operands & trained(record) or _steps(inputs, row):
            continue
        if _is_walked_plainly(record, tensor):
            return _Use(site=row.statement, binding=_first_name(constants), level=RULE.severity, raised=False)
    return None


def _steps(inputs: set[int | None], row: Operation) -> bool:
    """A sum of what was differentiated and its gradient: a step on a sample."""
    return row.function in ("+", "-") and not inputs.isdisjoint(row.operands)


def _is_added(record: Record, binding: Binding, constants: dict[int, str]) -> bool:
    """The statement binds a scalar sum, one summand of which is made of constants and numbers alone."""
    site = site_of(record, binding.site)
    node = statement(record, site)
    if lookup(record).tensors[binding.tensor].shape != () or not isinstance(node, ast.Assign):
        return False
    names = _names_of(record, constants, site.function, binding.moment, frozenset(site.reads))
    for summand in summands(node.value):
        read = {part for part in ast.walk(summand) if isinstance(part, ast.Name)}
        held = {part for part in ast.walk(summand) if _text(part) in names} if read else set[ast.AST]()
        inside = {part for one in held for part in ast.walk(one)}
        if summand is not node.value and held and all(part in inside or _is_number(record, part) for part in read):
            return True
    return False


def _is_number(record: Record, part: ast.Name) -> bool:
    """A name that never held a tensor, nor a module."""
    return not bindings_named(record)[part.id] and all(part.id != module.binding for module in record.modules)


def _is_step(record: Record, call: BackwardCall, binding: Binding, taken: Operation | None) -> bool:
    """`p - lr * dL/dp`, of the shape of `p`: a step of gradient descent, on fast weights or on a sample.

    Where the sum itself was seen, also by its operands: `out = residual(x)` reads `x`, and may add it to another.
    """
    inputs, tensors = {root.tensor for root in call.inputs or ()}, lookup(record).tensors
    stepped = inputs.intersection(binding.parents)
    if taken is not None and taken.function in ("+", "-"):
        stepped &= set(taken.operands)
    return any(one is not None and tensors[one].shape == tensors[binding.tensor].shape for one in stepped)


def _first_name(constants: dict[int, str]) -> str:
    """What the returned gradient is called: the first name bound, where there is one."""
    return next((name for name in constants.values() if name), "the gradient")


def _is_walked_plainly(record: Record, tensor: int) -> bool:
    """A backward call walks this tensor, and between the root and it no node takes in a trained parameter."""
    index = lookup(record)
    made = index.node_of.get(tensor)
    for later in record.backward_calls:
        if any(root.tensor == tensor for root in later.roots):
            return True
        if made is None or made.node not in reaches(record)[later.call].met:
            continue
        for root in later.roots:
            start = index.node_of.get(root.tensor) if root.tensor is not None else None
            way = between(record, start.node, made.node) if start is not None else frozenset[int]()
            if way and not any(_takes_parameter(record, node) for node in way - {made.node}):
                return True
    return False


_VIEWS: Final = frozenset(
    f"{view}Backward0" for view in ("T", "Transpose", "Permute", "View", "Unsqueeze", "Expand", "ToCopy", "AsStrided")
)


def _takes_parameter(record: Record, node: int) -> bool:
    """One operand of the node is a trained parameter, as it is or seen through views."""
    index = lookup(record)
    for edge in index.edges_of[node]:
        inner = index.nodes.get(edge.to_node) if edge.to_node is not None else None
        while inner is not None and inner.type in _VIEWS and index.edges_of[inner.node]:
            following = index.edges_of[inner.node][0].to_node
            inner = index.nodes.get(following) if following is not None else None
        if inner is not None and inner.variable is not None and inner.variable in trained(record):
            return True
    return False


def _finding(record: Record, call: BackwardCall, site: Site, use: _Use, constants: dict[int, str]) -> Finding:
    node, source = _grad_call(record, site), site.source
    region: Region | None = region_in(record, source, node) if node is not None else None
    instead = None if node is None else keyword(node, "retain_graph")
    if instead is not None and node is not None and node.end_lineno != node.lineno:
        region = region_in(record, source, instead)  # written where `create_graph` is due
    step = training_step_of(record, call.moment_before)
    name = use.binding
    what = (
        "is differentiated here, and has no history"
        if use.raised
        else "is used as a constant in a value that is differentiated"
    )
    fate = "is differentiated again" if use.raised else "is used as a constant in what is differentiated"
    effect = (
        "So the second call finds nothing to walk."
        if use.raised
        else "No gradient flows through it: a term of the loss made of it alone trains nothing."
    )
    if use.leaves:
        effect = f"No gradient flows through it to {together(record, use.leaves)}, and none comes another way."
    fixes: tuple[Fix, ...] = ()
    flag = None if node is None else keyword(node, "create_graph")
    if node is not None and (flag is None or isinstance(flag.value, ast.Constant)):  # a name may be a caller's to set
        edit = with_keyword(record, site, node, "create_graph", "True")
        fixes = (Fix(title="Record the history of the gradient", safety="safe", edits=(edit,)),)
    related = (Related(message=f"`{name}` {what}", location=location(record, use.site)),)
    shown, advice = location(record, site.site, region), "Give this call `create_graph=True`"
    caller = differing_caller(record, call)
    if caller is not None:
        related = (Related(message="the gradient is taken here", location=shown), *related)
        asked = call_of_function(record, caller, site.function)
        shown = location(record, caller.site, None if asked is None else region_in(record, caller.source, asked))
        advice = (
            f"Other calls of `{site.function.rpartition('.')[2]}` ask for `create_graph=True`: let this one ask too"
        )
        fixes = _fixes_of_caller(record, site, flag, caller, asked)
    return Finding(
        rule=rule_name(RULE),
        level=use.level,
        confidence=RULE.confidence,
        message=f"`{name}` comes from `autograd.grad` without `create_graph=True`, and {fate}.\n"
        f"{effect}\n{advice}; if a constant is meant, say so with `.detach()`.",
        location=shown,
        related=related,
        evidence={
            "binding": name,
            "call": call.call,
            "create_graph": False,
            "used_line": site_of(record, use.site).line,
            "constants": [*dict.fromkeys(name for name in constants.values() if name)][:8],
            "assumed": "the gradient is meant to be differentiated",
        },
        fixes=fixes,
        occurrences=Occurrences(first_step=step, last_step=step),
        subject=Subject(
            facts=(("call", call.call), *(("tensor", leaf) for leaf in use.leaves)), moment=call.moment_before
        ),
    )


def _fixes_of_caller(
    record: Record, site: Site, flag: ast.keyword | None, caller: Site, asked: ast.Call | None
) -> tuple[Fix, ...]:
    """`True` in place of the argument that a caller hands on as `create_graph`."""
    given = None if flag is None or asked is None else argument_behind(record, site, flag.value, asked)
    if not isinstance(given, ast.Constant) or given.value is not False:
        return ()
    edit = replacement(record, caller, region_in(record, caller.source, given), "True")
    return (Fix(title="Record the history of the gradient", safety="safe", edits=(edit,)),)


def _grad_call(record: Record, site: Site) -> ast.Call | None:
    """The call in the statement that asks for a gradient: None if there are several, or it is hidden."""
    node = statement(record, site)
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)] if node is not None else []
    asked = [call for call in calls if dotted(record, site, call.func) == "torch.autograd.grad"]
    return asked[0] if len(asked) == 1 else None
