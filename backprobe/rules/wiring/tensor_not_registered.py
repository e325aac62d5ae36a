"""BP714 tensor-not-registered: a module keeps a trainable tensor as a plain attribute, and no optimizer holds it.

What it finds:
    A leaf that requires grad is an attribute of a module, made outside of its forward pass, and is no `nn.Parameter`.
    It gets gradients in several steps, no optimizer holds it, and nothing reads its gradient or writes it. So it is
    with an `nn.Parameter` in a plain list, tuple or dict. The finding stands where the attribute is made.

Why it matters:
    It looks like a weight and never learns. It is neither saved by `state_dict()` nor moved by `to()`, and its gradient
    grows from step to step, since `zero_grad()` passes it by too.

What PyTorch does:
    `nn.Module` registers attributes that are an `nn.Parameter` or a module. A tensor that requires grad is an attribute
    like any other, and a list is not looked into. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.gain = torch.ones(2, requires_grad=True)  # <- here

        def forward(self, x):
            return self.inner(x) * self.gain

    net = Scaled()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.gain = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.inner(x) * self.gain

    net = Scaled()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Near miss: the optimizer is given it beside the parameters
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.gain = torch.ones(2, requires_grad=True)

        def forward(self, x):
            return self.inner(x) * self.gain

    net = Scaled()
    optimizer = torch.optim.SGD([*net.parameters(), net.gain], lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Near miss: its gradient is what is wanted
    import torch
    from torch import nn

    class Probe(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.gate = torch.ones(2, requires_grad=True)

        def forward(self, x):
            return self.inner(x) * self.gate

    net = Probe()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
        print(net.gate.grad)

Near miss: a constant of the module
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 2)
            self.gain = torch.ones(2)

        def forward(self, x):
            return self.inner(x) * self.gain

    net = Scaled()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Near miss: a list that registers what it holds
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.gains = nn.ParameterList([nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))])

        def forward(self, x):
            return x * self.gains[0] * self.gains[1]

    net = Scaled()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 2):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    A list that is filled by `append` is followed where one statement of the class alone fills it so.

Source:
    torch.nn.Module and torch.nn.parameter.Parameter in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.modules.parameter_uses import owners
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import method_called, site_at, trees
from backprobe.rules.analysis.training.first_values import is_given_values
from backprobe.rules.analysis.training.trained_parameters import in_optimizers, parameters
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Binding, Record
    from backprobe.rules.analysis.gradients.grad_lives import GradLife
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="tensor-not-registered",
    code="BP714",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "optimizer", "grad-life", "grad-read"),
    refines=("parameters-not-in-optimizer",),
)

_ADDS: Final = frozenset({"append", "extend", "insert", "update", "setdefault"})

LEAST_STEPS: Final = 2
"""Steps with a gradient: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per attribute."""
    stepped = {event.optimizer for event in record.optimizer_events if event.kind == "step"}
    held = {row.tensor for one in record.optimizers if one.optimizer in stepped for row in one.tensors}
    if held.isdisjoint(parameters(record)):
        return
    hidden: dict[int, tuple[str, str, list[GradLife]]] = {}
    for life in grad_lives(record).values():
        binding = _attribute(record, life.tensor)
        if binding is not None and _is_left_out(record, life, in_a_container=binding.name.endswith("]")):
            cls = binding.function.rpartition(".")[0].rpartition(".")[2]
            yield _finding(record, (cls, binding.name), binding.site, [life])
        elif binding is None and (place := _built_at(record, life)) is not None:
            hidden.setdefault(place[0], (*place[1:], []))[2].append(life)
    for site, (cls, name, lives) in hidden.items():
        yield _finding(record, (cls, f"{name}[]"), site, lives)


def _attribute(record: Record, tensor: int) -> Binding | None:
    """Where a tensor became an attribute of a module of the program, outside of a forward pass."""
    index = lookup(record)
    classes = {module.cls.rpartition(".")[2] for module in record.modules if module.user_code}
    for row in index.bindings_of[tensor]:
        owner = row.function.rpartition(".")[0].rpartition(".")[2]
        if row.name.startswith("self.") and owner in classes and index.moments[row.moment].module_call is None:
            return row
    return None


def _built_at(record: Record, life: GradLife) -> tuple[int, str, str] | None:
    """The statement of a class that puts an `nn.Parameter` that its methods name into a container, if it is only one.

    With the class and the name of the container.
    """
    index = lookup(record)
    row = index.tensors[life.tensor]
    if row.cls != "Parameter" or life.tensor in owners(record):
        return None
    owner = next((name for one in index.bindings_of[life.tensor] if (name := one.function.rpartition(".")[0])), "")
    if not owner or not _is_left_out(record, life, in_a_container=True):
        return None
    found = [
        (place.site, owner, name)
        for tree in trees(record).values()
        for cls in tree.nodes
        if isinstance(cls, ast.ClassDef) and cls.name == owner.rpartition(".")[2]
        for node in ast.walk(cls)
        if isinstance(node, ast.Assign | ast.Expr)
        and any(method_called(part) == "Parameter" for part in ast.walk(node))
        and (name := _container(node)) is not None
        and (place := site_at(record, node)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _container(node: ast.Assign | ast.Expr) -> str | None:
    """The plain list or dict of `self` that a statement stores into."""
    if isinstance(node, ast.Assign):
        held = node.targets[0]
        text = ast.unparse(held.value) if isinstance(held, ast.Subscript) else None
    else:
        call = node.value
        added = call.func if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
        text = ast.unparse(added.value) if added is not None and added.attr in _ADDS else None
    return text if text is not None and text.startswith("self.") else None


def _is_left_out(record: Record, life: GradLife, *, in_a_container: bool) -> bool:
    """Gradients in several steps, and nobody that uses them; an `nn.Parameter` only where a container hides it."""
    registered = life.tensor in owners(record) if in_a_container else True
    used = (
        (lookup(record).tensors[life.tensor].cls == "Parameter" and registered)
        or life.tensor in in_optimizers(record)
        or is_given_values(record, life)
        or any(read.tensor == life.tensor for read in record.grad_reads)
    )
    return not used and len(life.steps) >= LEAST_STEPS


def _finding(record: Record, owner: tuple[str, str], site: int, lives: list[GradLife]) -> Finding:
    cls, life = owner[0], lives[0]
    name, inside, _key = owner[1].partition("[")
    what = ("container", "what it holds") if inside else ("tensor", "it")
    hidden = lookup(record).tensors[life.tensor].cls == "Parameter"
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` is a plain {what[0]}, so `{cls}` does not register {what[1]}: `parameters()` leaves it out.",
            "It gets gradients in every step, no optimizer holds it, and it never changes.",
            "Make it an `nn.ParameterList` or `nn.ParameterDict`." if hidden else "Make it an `nn.Parameter`.",
        ),
        binding=name,
        moments=[row.moment for row in life.arrivals],
        related=(("gradients arrive from here", life.arrivals[0].site),),
        evidence={"class": cls, "steps_with_gradient": len(life.steps)},
        tensors=[one.tensor for one in lives],
    )
