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
    A list that is filled by `append` is not followed.

Source:
    torch.nn.Module and torch.nn.parameter.Parameter in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.grad_lives import grad_lives
from backprobe.rules.lookup import lookup
from backprobe.rules.rule import Rule
from backprobe.rules.told import told
from backprobe.rules.trained import in_optimizers, parameters
from backprobe.rules.uses import owners

if TYPE_CHECKING:
    from backprobe.record import Binding, Record
    from backprobe.rules.finding import Finding
    from backprobe.rules.grad_lives import GradLife

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

LEAST_STEPS: Final = 2
"""Steps with a gradient: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per attribute."""
    stepped = {event.optimizer for event in record.optimizer_events if event.kind == "step"}
    held = {row.tensor for one in record.optimizers if one.optimizer in stepped for row in one.tensors}
    if held.isdisjoint(parameters(record)):
        return
    for life in grad_lives(record).values():
        binding = _attribute(record, life.tensor)
        if binding is not None and _is_left_out(record, life, in_a_container=binding.name.endswith("]")):
            yield _finding(record, life, binding)


def _attribute(record: Record, tensor: int) -> Binding | None:
    """Where a tensor became an attribute of a module of the program, outside of a forward pass."""
    index = lookup(record)
    classes = {module.cls.rpartition(".")[2] for module in record.modules if module.user_code}
    for row in index.bindings_of[tensor]:
        owner = row.function.rpartition(".")[0].rpartition(".")[2]
        if row.name.startswith("self.") and owner in classes and index.moments[row.moment].module_call is None:
            return row
    return None


def _is_left_out(record: Record, life: GradLife, *, in_a_container: bool) -> bool:
    """Gradients in several steps, and nobody that uses them; an `nn.Parameter` only where a container hides it."""
    registered = life.tensor in owners(record) if in_a_container else True
    used = (
        (lookup(record).tensors[life.tensor].cls == "Parameter" and registered)
        or life.tensor in in_optimizers(record)
        or life.writes
        or any(read.tensor == life.tensor for read in record.grad_reads)
    )
    return not used and len(life.steps) >= LEAST_STEPS


def _finding(record: Record, life: GradLife, binding: Binding) -> Finding:
    cls = binding.function.rpartition(".")[0].rpartition(".")[2]
    name, inside, _key = binding.name.partition("[")
    what = ("container", "what it holds") if inside else ("tensor", "it")
    hidden = lookup(record).tensors[life.tensor].cls == "Parameter"
    return told(
        record,
        RULE,
        binding.site,
        (
            f"`{name}` is a plain {what[0]}, so `{cls}` does not register {what[1]}: `parameters()` leaves it out.",
            "It gets gradients in every step, no optimizer holds it, and it never changes.",
            "Make it an `nn.ParameterList` or `nn.ParameterDict`." if hidden else "Make it an `nn.Parameter`.",
        ),
        binding=name,
        moments=[row.moment for row in life.arrivals],
        related=(("gradients arrive from here", life.arrivals[0].site),),
        evidence={"class": cls, "steps_with_gradient": len(life.steps)},
        tensors=[life.tensor],
    )
