"""BP762 swa-without-bn-update: an averaged model is evaluated with batch statistics that belong to other weights.

What it finds:
    An `AveragedModel` with batch norm is evaluated, though it never ran in training mode and nothing but
    `update_parameters` wrote the statistics in it. The finding stands at the call that evaluates it.

Why it matters:
    Its running means and variances are those of the model that is being trained. With the averaged weights the
    activations are others: the averaged model looks worse than it is.

What PyTorch does:
    `update_parameters` averages the parameters and copies the buffers, unless `use_buffers=True`; `update_bn(loader,
    model)` runs the data through the averaged model in training mode and makes the statistics anew. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.optim.swa_utils import AveragedModel

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    averaged = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        averaged.update_parameters(model)
    averaged.eval()
    with torch.no_grad():
        print(averaged(torch.randn(2, 3)))  # <- here

Use instead:
    import torch
    from torch import nn
    from torch.optim.swa_utils import AveragedModel, update_bn

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    averaged = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(4, 8, 3)
    for x in data:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        averaged.update_parameters(model)
    update_bn(data, averaged)
    averaged.eval()
    with torch.no_grad():
        print(averaged(torch.randn(2, 3)))

Near miss: the buffers are averaged with the parameters
    import torch
    from torch import nn
    from torch.optim.swa_utils import AveragedModel

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    averaged = AveragedModel(model, use_buffers=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        averaged.update_parameters(model)
    averaged.eval()
    with torch.no_grad():
        print(averaged(torch.randn(2, 3)))

Blind spots:
    An average that the program keeps by its own code is not judged here: BP755 is told of one without buffers.

Source:
    "Taking care of batch normalization" in the documentation of torch.optim; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_sites import modules_by_number, outermost_call
from backprobe.rules.analysis.modules.training_modes import NORMS, inside, is_of, receiver_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import statement_at, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="swa-without-bn-update",
    code="BP762",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "version"),
)

_CLASS: Final = "AveragedModel"
_METHOD: Final = "update_parameters"


def check(record: Record) -> Iterator[Finding]:
    """One finding per averaged model."""
    if not _updates(record):
        return
    for module in record.modules:
        calls = [call for call in record.module_calls if call.module == module.module]
        if module.cls != _CLASS or module.user_code or not calls or any(call.training for call in calls):
            continue
        norms = [one for call in calls for one in inside(record, call) if is_of(record, one, NORMS)]
        if norms and not any(_is_written(record, one) for one in norms):
            yield _finding(record, calls, len({one.module for one in norms}))


def _updates(record: Record) -> bool:
    """The program averages parameters, and parameters alone."""
    parts = [part for tree in trees(record).values() for part in tree.nodes if isinstance(part, ast.Call)]
    buffers = any(one.arg == "use_buffers" for part in parts for one in part.keywords)
    return any(last_name(part.func) == _METHOD for part in parts) and not buffers


def _is_written(record: Record, call: ModuleCall) -> bool:
    """The module ran in training mode, or something else than `update_parameters` wrote a buffer of it."""
    module = modules_by_number(record)[call.module]
    held = {row.tensor for row in module.buffers if row.tensor is not None}
    sites = {event.site for tensor in held for event in lookup(record).inplace_of[tensor]}
    return call.training or any(_METHOD not in _text(record, site) for site in sites)


def _text(record: Record, site: int | None) -> str:
    node = statement_at(record, site)
    return "" if node is None else ast.unparse(node)


def _finding(record: Record, calls: list[ModuleCall], norms: int) -> Finding:
    places = [one for call in calls if (one := outermost_call(record, call)).site is not None]
    name = receiver_of(record, calls[0])
    layers = "a batch norm" if norms == 1 else f"{norms} batch norms"
    moments = [row.moment for row in record.moments if row.site == places[0].site] if places else []
    return told(
        record,
        RULE,
        (places or calls)[0].site or 0,
        (
            f"`{name}` averages weights, and is evaluated with {layers} whose statistics were never made for them.",
            "They are copies of those of the model in training, so the result is worse than the weights are.",
            f"Call `torch.optim.swa_utils.update_bn(loader, {name})` before this, or pass `use_buffers=True`.",
        ),
        binding=name,
        moments=moments[:1] or [0],
        evidence={"norms": norms, "calls_in_training_mode": 0},
    )
