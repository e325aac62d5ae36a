"""BP763 tied-weight-copied: an output layer is tied to an embedding by a copy or by memory, not by one parameter.

What it finds:
    The weight of an `nn.Linear` was made as a new parameter from a copy of an embedding's weight of the same shape, or
    two parameters share one memory; both got gradients, and an optimizer holds both. The finding stands at the
    statement that made it so.

Why it matters:
    Of a copy, the two matrices drift apart with the first step: there are twice the parameters, and what one learns the
    other does not. Of shared memory, each has a gradient of its own, and a step writes the same numbers twice.

What PyTorch does:
    Two modules are tied if they hold the same Parameter object. `nn.Parameter(w.clone())` is another one, and assigning
    `.data` shares elements but neither gradient nor optimizer state. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    table, out = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
    out.weight = nn.Parameter(table.weight.clone())  # <- here
    optimizer = torch.optim.SGD([*table.parameters(), *out.parameters()], lr=0.1)
    for ids in torch.randint(0, 9, (3, 8)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(out(table(ids)), ids).backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    table, out = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
    out.weight = table.weight
    both = nn.ModuleList([table, out])
    optimizer = torch.optim.SGD(both.parameters(), lr=0.1)
    for ids in torch.randint(0, 9, (3, 8)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(out(table(ids)), ids).backward()
        optimizer.step()

Near miss: one layer begins with the values of another one
    import torch
    from torch import nn

    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = nn.Parameter(first.weight.detach().clone())
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        second(torch.relu(first(x))).pow(2).mean().backward()
        optimizer.step()

Near miss: the copy is frozen
    import torch
    from torch import nn

    table, out = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
    out.weight = nn.Parameter(table.weight.detach().clone(), requires_grad=False)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
    for ids in torch.randint(0, 9, (3, 8)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(out(table(ids)), ids).backward()
        optimizer.step()

Blind spots:
    Values that are copied in place, by `copy_` or `load_state_dict`, are taken for an initialisation.

Source:
    Press and Wolf, "Using the Output Embedding to Improve Language Models" (2017); observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.training.trained_parameters import in_optimizers, with_gradient
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="tied-weight-copied",
    code="BP763",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "optimizer", "grad-life", "parents"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per parameter that should have been another one."""
    trained = sorted(with_gradient(record) & set(in_optimizers(record)))
    index = lookup(record)
    first: dict[tuple[object, ...], int] = {}
    for tensor in trained:
        row = index.tensors[tensor]
        shared = first.setdefault((row.storage, row.storage_offset, row.shape), tensor)
        if shared != tensor and row.storage is not None:
            made = _memory_given(record, row.storage)
            if made is not None:
                yield _finding(record, tensor, shared, made, "memory")
            continue
        made = _parameter_made(record, tensor)
        source = None if made is None else _copied(record, made, row.shape)
        if made is not None and source in trained and _class_of(record, tensor, made) == "Linear":
            yield _finding(record, tensor, source, made, "copy")


@table
def _owners(record: Record) -> dict[int, str]:
    """The class of the module that holds each parameter, of torch's own modules."""
    return {
        row.tensor: module.cls
        for module in record.modules
        for row in module.parameters
        if row.tensor is not None and not module.user_code
    }


def _class_of(record: Record, tensor: int, made: Binding) -> str | None:
    """The class of the module that holds a parameter; by the name that it was assigned to, if the module is older."""
    holder = made.name.rpartition(".")[0].rpartition(".")[2]
    named = (row for row in record.modules if holder and holder == (row.binding or row.fqn or "").rpartition(".")[2])
    return _owners(record).get(tensor) or next((row.cls for row in named), None)


def _parameter_made(record: Record, tensor: int) -> Binding | None:
    """The statement that made this tensor a new parameter and gave it a name."""
    made = {row.statement for row in record.operations if row.tensor == tensor and row.function.endswith("Parameter")}
    return next((row for row in lookup(record).bindings_of[tensor] if row.site in made), None)


def _memory_given(record: Record, storage: int) -> Binding | None:
    """The assignment to `.data` that gave a parameter this memory."""
    index = lookup(record)
    return next(
        (row for row in record.bindings if row.name.endswith(".data") and index.tensors[row.tensor].storage == storage),
        None,
    )


def _copied(record: Record, made: Binding, shape: tuple[int, ...] | None) -> int:
    """The weight of an embedding, of this shape, whose elements the binding's tensor was made from; -1: none."""
    index = lookup(record)
    waiting, seen = list(made.parents), {made.tensor}
    while waiting:
        tensor = waiting.pop()
        if tensor in seen or index.tensors[tensor].shape != shape:
            continue
        seen.add(tensor)
        if _owners(record).get(tensor) == "Embedding":
            return tensor
        waiting += [one for bound in index.bindings_of[tensor][:1] for one in bound.parents]
    return -1


def _finding(record: Record, tensor: int, source: int, made: Binding, how: str) -> Finding:
    name, other = made.name.removesuffix(".data"), called(record, source)
    if how == "copy":
        what = f"`{name}` is a copy of `{other}`, made a parameter of its own, and both are trained."
        why = "They are equal until the first step: nothing ties them."
    else:
        what = f"`{name}` and `{other}` are two parameters with one memory, and both are trained."
        why = "Each has a gradient and optimizer state of its own, and a step writes the same numbers twice."
    return told(
        record,
        RULE,
        made.site,
        (what, why, "Assign the parameter itself: `out.weight = table.weight`."),
        binding=name,
        moments=[made.moment],
        evidence={"how": how, "tensors": [source, tensor], "assumed": "the two are meant to be one"},
        tensors=(tensor, source),
    )
