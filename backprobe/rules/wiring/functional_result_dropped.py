"""BP761 functional-result-dropped: parameters that were trained as values are never written back to their module.

What it finds:
    Gradients are taken by `torch.func` of a module that is called with other parameters by `functional_call`, no
    optimizer and no write ever changes the module's own, and after the last gradient the module itself is called
    without gradients. The finding stands at that call.

Why it matters:
    What is evaluated are the weights of the start: training went into a dict of tensors that the module does not see.

What PyTorch does:
    `functional_call` puts the given tensors in place of the parameters for one call and takes them out again; functions
    of `torch.func` change nothing. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.func import functional_call, grad

    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    weights = {name: value.detach() for name, value in model.named_parameters()}

    def loss_of(weights):
        return (functional_call(model, weights, (x,)) - 1).pow(2).mean()

    for _ in range(4):
        slopes = grad(loss_of)(weights)
        weights = {name: value - 0.1 * slopes[name] for name, value in weights.items()}
    with torch.no_grad():
        print(model(x).mean())  # <- here

Use instead:
    import torch
    from torch import nn
    from torch.func import functional_call, grad

    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    weights = {name: value.detach() for name, value in model.named_parameters()}

    def loss_of(weights):
        return (functional_call(model, weights, (x,)) - 1).pow(2).mean()

    for _ in range(4):
        slopes = grad(loss_of)(weights)
        weights = {name: value - 0.1 * slopes[name] for name, value in weights.items()}
    model.load_state_dict(weights)
    with torch.no_grad():
        print(model(x).mean())

Near miss: the new weights are used in the same way after training
    import torch
    from torch import nn
    from torch.func import functional_call, grad

    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    weights = {name: value.detach() for name, value in model.named_parameters()}

    def loss_of(weights):
        return (functional_call(model, weights, (x,)) - 1).pow(2).mean()

    for _ in range(4):
        slopes = grad(loss_of)(weights)
        weights = {name: value - 0.1 * slopes[name] for name, value in weights.items()}
    with torch.no_grad():
        print(model(x).mean(), functional_call(model, weights, (x,)).mean())

Blind spots:
    A program with an optimizer may train the module in the outer loop, as meta-learning does, and is not judged.

Source:
    torch.func.functional_call in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="functional-result-dropped",
    code="BP761",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "backward", "version", "optimizer"),
)

_NAME: Final = "functional_call"
_GRADIENTS: Final = ("torch.func.grad", "torch.func.grad_and_value", "torch.func.vjp", "torch.func.jacrev")
LEAST: Final = 2
"""Calls of the module with other parameters, before it is called with its own."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per module."""
    if record.optimizers or not _takes_gradients(record) or _is_written(record):
        return
    lent: dict[str, list[Operation]] = {}
    for row in record.operations:
        if row.function.rpartition(".")[2] == _NAME:
            lent.setdefault(_module_of(record, row), []).append(row)
    for name, rows in lent.items():
        own = [row for row in record.operations if row.function == name]
        is_last = all(row.operation > rows[-1].operation and row.requires_grad is False for row in own)
        if name and own and is_last and len(rows) >= LEAST:
            yield _finding(record, name, own[0], len(rows))


def _takes_gradients(record: Record) -> bool:
    """The program takes gradients of functions, by `torch.func`."""
    for source, tree in trees(record).items():
        site = next((one for one in record.sites if one.source == source), None)
        parts = (part for part in tree.nodes if isinstance(part, ast.Call))
        if site is not None and any(dotted(record, site, part.func) in _GRADIENTS for part in parts):
            return True
    return False


def _module_of(record: Record, row: Operation) -> str:
    """What is called with other parameters, as the program writes it; "" if that is not seen."""
    site = site_of(record, row.statement)
    for part in ast.walk(statement(record, site) or ast.Pass()):
        if isinstance(part, ast.Call) and last_name(part.func) == _NAME and part.args:
            region = region_in(record, site.source, part)
            if (region.start_line, region.start_col) == (row.line, row.col):
                return ast.unparse(part.args[0])
    return ""


def _is_written(record: Record) -> bool:
    """Some parameter of a module was changed in place."""
    index = lookup(record)
    return any(index.tensors[event.tensor].role == "parameter" for event in record.inplace_events)


def _finding(record: Record, name: str, call: Operation, lent: int) -> Finding:
    return told(
        record,
        RULE,
        call.statement,
        (
            f"`{name}` is called here with the weights that it was made with: nothing ever wrote to them.",
            f"Its {lent} calls with other parameters went through `{_NAME}`, which leaves the module as it was.",
            f"Load what was trained, `{name}.load_state_dict(...)`, or evaluate by `{_NAME}` too.",
        ),
        binding=name,
        moments=[call.moment or 0],
        evidence={"functional_calls": lent, "writes": 0},
    )
