"""BP702 parameters-replaced-after-optimizer: an optimizer still holds parameters that the model has since replaced.

What it finds:
    An optimizer was built over a model, and then a part of the model was given new parameters: another head, a deep
    copy, a layer built again, a state that is loaded with `assign=True`. The new ones get the gradients; the optimizer
    holds the old ones. The finding stands at the optimizer if it is merely built too early. It stands where the part is
    replaced if the optimizer had stepped before, if a state is loaded so, if a function built it that was given the
    model, or if a parameter of the same shape could have been written in place; and of a function that knows no
    optimizer, as a method of the model, where that is called.

Why it matters:
    The new parameters stay as they were made, while the rest learns around them, or nothing learns at all.

What PyTorch does:
    An optimizer holds tensors, not names. Assigning a new module makes new tensors, of which it knows nothing; those
    that it holds get no gradient any more and are skipped. Nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # <- here
    model[1] = nn.Linear(8, 2)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    model[1] = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: the state is loaded so before the optimizer is built
    import torch
    from torch import nn

    saved, model = nn.Linear(4, 2).state_dict(), nn.Linear(4, 2)
    model.load_state_dict(saved, assign=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: the new parameters are added to it
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[1] = nn.Linear(8, 2)
    optimizer.add_param_group({"params": model[1].parameters()})
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: the copy is a teacher, and the model itself is trained
    import copy

    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    teacher = copy.deepcopy(model).requires_grad_(False)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        (model(x) - teacher(x + 1)).pow(2).mean().backward()
        optimizer.step()

Near miss: what was replaced was trained before, and a new optimizer follows
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    for _ in range(2):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(3, 8, 4):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        model[1] = nn.Linear(8, 2)

Blind spots:
    The old and the new parameter are matched by their key in the model, so a part that moves to another name is left to
    BP701.

Source:
    torch.optim in PyTorch's documentation ("construct the optimizer afterwards"); observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.optimizers.parameter_lists import region_that_lists
from backprobe.rules.analysis.optimizers.rebound_leaves import Rebound, rebound_leaves
from backprobe.rules.analysis.optimizers.replaced_parts import replaced_at, was_given_the_model, with_optimizer
from backprobe.rules.analysis.optimizers.successors import LEAST_STEPS, Successors, successors
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import capital
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import site_of, statement_at
from backprobe.rules.analysis.training.trained_parameters import parameters, shared_key
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="parameters-replaced-after-optimizer",
    code="BP702",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("optimizer", "module", "grad-life", "binding"),
    refines=("parameters-not-in-optimizer",),
    explains=("step-without-gradient",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer that holds what was replaced."""
    for one in successors(record):
        yield _finding(record, one)
    by_site: dict[int, list[Rebound]] = {}
    for row in rebound_leaves(record):
        by_site.setdefault(row.binding.site, []).append(row)
    for site, rows in by_site.items():
        if len({one.binding.tensor for one in rows}) >= LEAST_STEPS:
            yield _finding_rebound(record, site, rows)


def _finding_rebound(record: Record, site: int, rows: list[Rebound]) -> Finding:
    first = rows[0]
    who, name = first.optimizer.binding or first.optimizer.cls, first.binding.name
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` is another tensor from here on, and `{who}` still holds the first one.",
            f"Its gradients arrive in the new `{name}`: the steps of `{who}` change nothing that is used.",
            f"Change it in place: `with torch.no_grad(): {name}.copy_(...)`, or `{name}.clamp_(...)`.",
        ),
        binding=name,
        moments=[one.binding.moment for one in rows],
        related=((f"`{who}` is built here", first.optimizer.site),),
        evidence={"optimizer": who, "held": [first.old], "used": [one.binding.tensor for one in rows[:16]]},
        tensors=[first.old, *(one.binding.tensor for one in rows)],
        optimizers=(first.optimizer.optimizer,),
    )


def _finding(record: Record, found: Successors) -> Finding:
    optimizer, number, pairs = found.optimizer, found.site, found.pairs
    who, index = optimizer.binding or optimizer.cls, lookup(record)
    keys = [parameters(record)[new] for _old, new in pairs]
    arrivals = grad_lives(record)[pairs[0][1]].arrivals
    prefix, one = shared_key(keys), len(keys) == 1
    what = f"`{keys[0]}`" if one else f"the parameters of `{prefix}`" if prefix else f"{len(keys)} parameters"
    made = index.tensors[pairs[0][1]].site
    done = replaced_at(record, optimizer, pairs) if found.loaded is None else found.loaded
    trained, written = _has_trained(record, optimizer, pairs), _could_be_written(record, done, pairs)
    late = found.loaded
    if written:
        late = done
    elif late is None and done is not None and (trained or was_given_the_model(record, number, done)):
        late = with_optimizer(record, number, done)
    are = "is" if one else "are"
    story = f"`{who}` is built here and keeps the old tensors: {what} {are} replaced afterwards."
    advice = "Build the optimizer after the model has its last form, or add the new ones with `add_param_group`."
    if late is not None:
        holds = "has trained the old tensors, and keeps them" if trained else "holds the old tensors"
        story = f"`{who}` {holds}: {what} {are} replaced here."
        advice = "Build a new optimizer after this, or hand over the new ones with `add_param_group`."
    if found.loaded is not None:
        advice = "Load it without `assign=True`, which copies the values, or build the optimizer after this."
    if written:
        advice = "Write the new value in place: `with torch.no_grad(): parameter.copy_(...)`."
    return told(
        record,
        RULE,
        number if late is None else late,
        (story, f"{capital(what)} {'gets' if one else 'get'} gradients in every step, and nothing uses them.", advice),
        binding=prefix or keys[0],
        moments=[row.moment for row in arrivals],
        region=region_that_lists(record, site_of(record, number), chooses=False) if late is None else None,
        related=(
            (f"`{who}` is built here", None if late is None else number),
            ("it is replaced here", None if late is None or done == late else done),
            ("the new parameters are made here", made if made != late and (late is None or made != done) else None),
            ("gradients reach the new ones from here", arrivals[0].site),
        ),
        evidence={
            "parameters": keys[:16],
            "optimizer": who,
            "held": [old for old, _new in pairs[:16]],
            "used": [new for _old, new in pairs[:16]],
        },
        tensors=[tensor for pair in pairs for tensor in pair],
        optimizers=(optimizer.optimizer,),
    )


def _has_trained(record: Record, optimizer: Optimizer, pairs: list[tuple[int, int]]) -> bool:
    """The optimizer had stepped before the new ones were made: to build it later would mend nothing."""
    made = lookup(record).tensors[pairs[0][1]].moment
    return any(
        row.moment < made
        for row in record.optimizer_events
        if (row.kind, row.optimizer) == ("step", optimizer.optimizer)
    )


def _could_be_written(record: Record, done: int | None, pairs: list[tuple[int, int]]) -> bool:
    """A single parameter is assigned that has the shape of the old one."""
    node, shapes = statement_at(record, done), {lookup(record).tensors[one].shape for one in pairs[0]}
    value = node.value if isinstance(node, ast.Assign) else None
    is_parameter = isinstance(value, ast.Call) and last_name(value.func) == "Parameter"
    return is_parameter and len(pairs) == len(shapes) == 1 and None not in shapes
