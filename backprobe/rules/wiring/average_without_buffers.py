"""BP755 average-without-buffers: a copy follows a model's parameters, but not the statistics of its batch norms.

What it finds:
    A loop writes the parameters of a second network again and again while the first one trains; batch norms of the
    first move their running means, those of the second are never written and never run in training mode, and the
    second is called in eval mode. The finding stands at the loop over the parameters.

Why it matters:
    The copy normalises with the mean and variance that it was born with, mostly 0 and 1: its weights are an average
    of trained ones, and its results are near chance. A teacher of that kind teaches noise.

What PyTorch does:
    `parameters()` lists what is trained. `running_mean`, `running_var` and `num_batches_tracked` are buffers: they are
    in `buffers()` and in `state_dict()`. Seen in torch 2.13.

Example:
    import copy
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    average = copy.deepcopy(model).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(6, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(average.parameters(), model.parameters()):  # <- here
                p.lerp_(q, 0.1)
    with torch.no_grad():
        print(average(torch.randn(2, 3)))

Use instead:
    import copy
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    average = copy.deepcopy(model).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(6, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(average.parameters(), model.parameters()):
                p.lerp_(q, 0.1)
            for p, q in zip(average.buffers(), model.buffers()):
                p.copy_(q)
    with torch.no_grad():
        print(average(torch.randn(2, 3)))

Near miss: the copy runs in training mode, and makes its own
    import copy
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    teacher = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(6, 8, 3):
        with torch.no_grad():
            wanted = teacher(x + 0.1)
        optimizer.zero_grad()
        (model(x) - wanted).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(teacher.parameters(), model.parameters()):
                p.lerp_(q, 0.1)

Near miss: the model's statistics stay as they are
    import copy
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    model[1].eval().requires_grad_(False)
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(6, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(average.parameters(), model.parameters()):
                p.lerp_(q, 0.1)
    print(average(torch.randn(2, 3)))

Blind spots:
    A batch norm with `affine=False` has no parameters by which the average would be seen. Buffers of the program's own
    classes are not judged. `AveragedModel` of torch copies buffers: BP762 is told of it.

Source:
    A. Tarvainen and H. Valpola, Mean teachers (2017); torch.nn.Module.buffers in PyTorch's documentation; observed with
    torch 2.13.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_sites import outermost_call
from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.modules.training_modes import NORMS, receiver_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import Function
from backprobe.rules.analysis.source.syntax import method_called, number_at, parts_of, site_of, statement_at, tree_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Module, ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="average-without-buffers",
    code="BP755",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "version", "optimizer"),
)

LEAST: Final = 3
"""Writes of one parameter by one statement, and moves of the trained statistics while they go on."""
_LISTS: Final = frozenset({"parameters", "named_parameters"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that updates the parameters."""
    norms = [row for row in record.modules if row.cls in NORMS and not row.user_code and _buffers(row)]
    moved = _moved(record, norms)
    by_site: defaultdict[int, list[tuple[Module, list[InplaceEvent], ModuleCall]]] = defaultdict(list)
    for module in norms if moved else ():
        writes = _writes(record, module)
        call = _evaluating(record, module, writes)
        if call is None or writes[0].site is None:
            continue
        start = writes[0].moment
        moves = moved.get((module.cls, _shape(record, module)), [])
        written = [event for one in _buffers(module) for event in lookup(record).inplace_of[one]]
        if not any(event.moment >= start for event in written) and sum(one >= start for one in moves) >= LEAST:
            by_site[writes[0].site].append((module, writes, call))
    for site, found in by_site.items():
        yield _finding(record, site, found)


def _buffers(module: Module) -> list[int]:
    return [row.tensor for row in module.buffers if row.tensor is not None]


def _shape(record: Record, module: Module) -> tuple[int, ...] | None:
    """Of its running mean, which two networks of one kind have in common."""
    return lookup(record).tensors[_buffers(module)[0]].shape


def _moved(record: Record, norms: list[Module]) -> dict[tuple[str, tuple[int, ...] | None], list[int]]:
    """When the statistics of trained norms moved, by class and shape."""
    found: defaultdict[tuple[str, tuple[int, ...] | None], list[int]] = defaultdict(list)
    for module in norms:
        trained = any(row.tensor in in_optimizers(record) for row in module.parameters)
        if trained and any(call.training for call in calls_of_modules(record).get(module.module, ())):
            moves = [event.moment for event in lookup(record).inplace_of[_buffers(module)[0]]]
            found[module.cls, _shape(record, module)] += moves
    return dict(found)


def _writes(record: Record, module: Module) -> list[InplaceEvent]:
    """What one statement wrote into its first parameter, again and again; empty if an optimizer holds it."""
    tensors = [row.tensor for row in module.parameters if row.tensor is not None]
    if not tensors or any(one in in_optimizers(record) for one in tensors):
        return []
    events = [row for row in lookup(record).inplace_of[tensors[0]] if row.done_by == "statement"]
    times = Counter(row.site for row in events if row.site is not None)
    site, number = times.most_common(1)[0] if times else (None, 0)
    return [row for row in events if row.site == site] if number >= LEAST else []


def _evaluating(record: Record, module: Module, writes: list[InplaceEvent]) -> ModuleCall | None:
    """Its last call, if it has none in training mode and that one came after a write; None otherwise."""
    calls = calls_of_modules(record).get(module.module, [])
    if not writes or not calls or any(call.training for call in calls):
        return None
    last = outermost_call(record, calls[-1])
    return last if last.site is not None and _last_run(record).get(last.site, 0) > writes[0].moment else None


@table
def _last_run(record: Record) -> dict[int | None, int]:
    """The last moment of each statement."""
    return {row.site: row.moment for row in record.moments}


def _updating(record: Record, site: int) -> int:
    """The loop over the parameters around the statement; itself where there is none."""
    node, tree = statement_at(record, site), tree_of(record, site_of(record, site))
    for above in () if node is None or tree is None else tree.ancestors(node):
        if isinstance(above, ast.For) and any(method_called(part) in _LISTS for part in parts_of(above.iter)):
            return number_at(record, above) or site
        if isinstance(above, Function):
            break
    return site


def _finding(record: Record, site: int, found: list[tuple[Module, list[InplaceEvent], ModuleCall]]) -> Finding:
    _module, writes, call = found[0]
    name = receiver_of(record, call)
    layers = "a batch norm" if len(found) == 1 else f"{len(found)} batch norms"
    place = _updating(record, site)
    return told(
        record,
        RULE,
        place,
        (
            f"`{name}` follows the parameters of the model, but not its buffers.",
            f"It has {layers} with the running statistics that it was made with, and is called in eval mode.",
            "Copy the buffers as well: `for b, c in zip(copy.buffers(), model.buffers()): b.copy_(c)`.",
        ),
        binding=name,
        moments=[row.moment for row in writes],
        related=(
            ("this writes a parameter", None if place == site else site),
            ("it is called in eval mode here", call.site),
        ),
        evidence={"norms": len(found), "updates": len(writes)},
        tensors=[tensor for module, _writes, _call in found for tensor in _buffers(module)],
    )
