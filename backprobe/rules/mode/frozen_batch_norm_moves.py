"""BP614 frozen-batch-norm-moves: the statistics of a frozen part's batch norm go on changing.

What it finds:
    All parameters of a module are frozen, its batch norm runs in training mode, and its running mean changes while an
    optimizer steps on others. The finding stands at the `train()` that put it into that mode, else at its call.

Why it matters:
    The frozen features drift with every batch: what the head learned yesterday does not fit today, and the saved
    encoder is not the one that was loaded.

What PyTorch does:
    `requires_grad_(False)` freezes parameters. The running mean and variance are buffers: every call in training mode
    changes them. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    trunk = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)).requires_grad_(False)
    head = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        features = trunk(torch.randn(8, 6))  # <- here
        loss = head(features).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    trunk = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)).requires_grad_(False)
    trunk.eval()
    head = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        features = trunk(torch.randn(8, 6))
        loss = head(features).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the batch norm itself is trained
    import torch
    from torch import nn

    trunk = nn.Sequential(nn.Linear(6, 8).requires_grad_(False), nn.BatchNorm1d(8))
    head = nn.Linear(8, 2)
    optimizer = torch.optim.SGD([*trunk[1].parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        loss = head(trunk(torch.randn(8, 6))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a teacher that follows the student
    import copy

    import torch
    from torch import nn

    student = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 6)
        loss = (student(x) - teacher(x + 0.1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(teacher.parameters(), student.parameters()):
                kept.lerp_(new, 0.1)

Near miss: the statistics were fitted before the part was frozen
    import torch
    from torch import nn

    class Transfer(nn.Module):
        def __init__(self, trunk):
            super().__init__()
            self.trunk, self.head = trunk.requires_grad_(False), nn.Linear(8, 2)

        def train(self, mode=True):
            super().train(mode)
            self.trunk[1].eval()
            return self

        def forward(self, x):
            return self.head(self.trunk(x))

    def fit(model, parameters):
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for _ in range(4):
            model.train()
            optimizer.zero_grad()
            model(torch.randn(8, 6)).pow(2).mean().backward()
            optimizer.step()

    trunk = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8))
    fit(trunk, trunk.parameters())
    model = Transfer(trunk)
    fit(model, model.head.parameters())

Near miss: the norms are put into eval after each `train()`
    import torch
    from torch import nn

    body, norm, head = nn.Linear(4, 6), nn.BatchNorm1d(6).requires_grad_(False), nn.Linear(6, 1)
    model = nn.Sequential(body, norm, nn.ReLU(), head)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    for x in torch.randn(4, 8, 4):
        model.train()
        norm.eval()
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    A part that is frozen under `no_grad` only, with parameters that require grad, is not seen as frozen.

Source:
    torch.nn.BatchNorm1d in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backprobe.rules.analysis.modules.module_sites import calls_by_number, modules_by_number
from backprobe.rules.analysis.modules.training_modes import (
    NORMS,
    is_of,
    module_of,
    modules_of,
    parameters_in,
    receiver_of,
    written_call,
)
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import line_before
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.analysis.training.steps import last_moments, step_of
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Mode, ModuleCall, Record, Snapshot, Statistics
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="frozen-batch-norm-moves",
    code="BP614",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("module", "snapshot", "optimizer", "version", "stats"),
)
_LEAST = 2
"""Calls after which a step was taken: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per frozen module whose batch norm runs in training mode while others are trained."""
    steps = [row.moment for row in record.optimizer_events if row.kind == "step"]
    by_place: dict[tuple[int, int], list[ModuleCall]] = {}
    norms = modules_of(record, NORMS)
    for call in record.module_calls if norms else ():
        if call.training and call.module in norms:
            top = _frozen_around(record, call)
            if top is not None and top.site is not None and _moves(record, call.module, _since(record, top)):
                by_place.setdefault((top.site, top.module), []).append(top)
    told_of: set[tuple[int, int]] = set()
    for (site, module), calls in by_place.items():
        since = max(steps[0], _since(record, calls[0])) if steps else 0
        is_pattern = len({call.k for call in calls}) >= _LEAST and len(steps) >= _LEAST
        if not is_pattern or last_moments(record).get(site, since) < since:
            continue
        switch = _put_into_training(record, calls, _since(record, calls[0]))
        place = site if switch is None else switch
        if (place, module) not in told_of:
            told_of.add((place, module))
            yield _finding(record, site, calls, switch)
    woken = _woken(record) if not by_place and len(steps) >= _LEAST else []
    if woken:
        yield _finding_woken(record, woken)


def _put_into_training(record: Record, calls: Sequence[ModuleCall], since: int) -> int | None:
    """The statement that put the called module, or one that holds it, into training mode; None: none did.

    The first behind the freeze, else the last before it: what trained the module itself earlier was right.
    """
    known, around = calls_by_number(record), set[int]()
    for call in (calls[0], calls[-1]):  # the same part may have stood in another model before
        one: ModuleCall | None = call
        while one is not None:
            around.add(one.module)
            one = None if one.parent is None else known.get(one.parent)
    rows = (row for row in record.modes if row.kind == "training" and row.how == "call" and row.after == "True")
    of_it = [(row.moment or 0, row.site) for row in rows if row.module in around and row.site is not None]
    later = [site for moment, site in of_it if moment > since]
    return later[0] if later else of_it[-1][1] if of_it else None


def _woken(record: Record) -> list[tuple[Mode, ModuleCall]]:
    """Frozen batch norms that the program put into eval, and that a later `train()` of something else put back."""
    rows = [row for row in record.modes if row.kind == "training" and row.how == "call" and row.moment is not None]
    asleep = {row.module: row.moment for row in reversed(rows) if row.after == "False" and row.module is not None}
    found: dict[int, tuple[Mode, ModuleCall]] = {}
    for call in record.module_calls:
        since = asleep.get(call.module)
        if since is None or not call.training or call.module in found or not is_of(record, call, NORMS):
            continue
        if not _own(record, call) or not _own(record, call) <= _frozen(record).keys():
            continue
        later = (row for row in rows if row.after == "True" and row.module != call.module and row.site is not None)
        switch = next((row for row in later if (row.moment or 0) > (since or 0)), None)
        if switch is not None and _moves(record, call.module, max(switch.moment or 0, _since(record, call))):
            found[call.module] = (switch, call)
    return list(found.values())


def _finding_woken(record: Record, woken: list[tuple[Mode, ModuleCall]]) -> Finding:
    switch, call = woken[0]
    parameters = sorted({one for _switch, row in woken for one in _own(record, row)})
    norms = "1 batch norm" if len(woken) == 1 else f"{len(woken)} batch norms"
    slept = next((row.site for row in record.modes if row.module == call.module and row.after == "False"), None)
    return told(
        record,
        RULE,
        switch.site or 0,
        (
            f"This puts {norms} back into training mode, though the program froze them and put them into eval.",
            "No parameter of theirs is trained, yet their running statistics move with every batch.",
            "Put them into eval after each `train()`, or do so in the `train` method of the model that holds them.",
        ),
        binding=receiver_of(record, call),
        moments=[switch.moment or 0],
        related=(("put into eval here", slept),),
        evidence={"frozen": parameters[:16], "modules": len(woken)},
    )


def _moves(record: Record, number: int, since: int) -> bool:
    """Its running mean takes other values in two steps from a moment on, not all of them before the training.

    Those of before the training are of a norm that is fitted to the data.
    """
    module = modules_by_number(record).get(number)
    buffers = module.buffers if module is not None else ()
    mean = next((row.tensor for row in buffers if row.name == "running_mean"), None)
    if mean is None:
        return False
    steps: set[int] = set()
    before: Statistics | None = None
    for row in lookup(record).snapshots_of[mean]:
        if row.value is not None:
            if before is not None and row.value != before and row.moment > since:
                steps.add(step_of(record, row.moment))
            before = row.value
    return len(steps) >= _LEAST


def _frozen_around(record: Record, call: ModuleCall) -> ModuleCall | None:
    """The outermost call around a batch norm in which every parameter is frozen; None if its own are not.

    A batch norm alone, without another frozen layer beside it, has nothing whose features could drift.
    """
    known, found = calls_by_number(record), None
    one: ModuleCall | None = call
    while one is not None:
        parameters = parameters_in(record, one)
        if not parameters <= _frozen(record).keys():
            break
        if parameters - _own(record, call):
            found = one
        one = known.get(one.parent) if one.parent is not None else None
    return found


def _own(record: Record, call: ModuleCall) -> set[int]:
    module = module_of(record, call)
    return {row.tensor for row in (module.parameters if module is not None else ()) if row.tensor is not None}


def _since(record: Record, call: ModuleCall) -> int:
    """The moment at which the last parameter that a call uses was frozen."""
    return max((_frozen(record)[tensor] for tensor in parameters_in(record, call)), default=0)


@table
def _frozen(record: Record) -> dict[int, int]:
    """Parameters that require no grad in the end, and that nothing has written since: the moment since when.

    0: they never did. What an optimizer held before, as in a training of its own that came first, counts for nothing.
    """
    index = lookup(record)
    touched: dict[int, int] = {}
    for row in record.inplace_events:
        if row.site is not None and row.moment > _first_step(record):
            touched[row.tensor] = row.moment
    for row in record.leaf_grads:
        if row.kind != "untouched":
            touched[row.tensor] = max(touched.get(row.tensor, 0), row.moment)
    stepped = {row.optimizer: row.moment for row in record.optimizer_events if row.kind == "step"}
    for optimizer in record.optimizers:
        for one in optimizer.tensors:
            last = stepped.get(optimizer.optimizer, len(record.moments))
            touched[one.tensor] = max(touched.get(one.tensor, 0), last)
    every = {row.tensor for module in record.modules for row in module.parameters if row.tensor is not None}
    found = {tensor: _frozen_since(index.snapshots_of[tensor]) for tensor in every}
    return {tensor: at for tensor, at in found.items() if at is not None and touched.get(tensor, -1) < at}


def _frozen_since(rows: Sequence[Snapshot]) -> int | None:
    """The first moment from which on it required no grad; 0: it never did. None: it does in the end."""
    if not rows or rows[-1].requires_grad:
        return None
    required = [at for at, row in enumerate(rows) if row.requires_grad]
    return rows[required[-1] + 1].moment if required else 0


def _first_step(record: Record) -> int:
    return next((row.moment for row in record.optimizer_events if row.kind == "step"), 0)


def _finding(record: Record, site: int, calls: list[ModuleCall], switch: int | None) -> Finding:
    first = calls[0]
    name, written = receiver_of(record, first), written_call(record, first)
    parameters = sorted(parameters_in(record, first))
    node = statement(record, site_of(record, site))
    fixes: list[Fix] = []
    was_trained = any(lookup(record).leaf_grads_of[tensor] for tensor in parameters)  # there eval() would be wrong
    if (
        not was_trained
        and node is not None
        and written is not None
        and name.replace(".", "").replace("_", "").isalnum()
    ):
        edit = line_before(record, site_of(record, site), node, f"{name}.eval()")
        fixes = [] if edit is None else [Fix(title="Put it into eval mode", safety="unsafe", edits=(edit,))]
    line = line_words(record, site, switch)
    first_words = (
        f"`{name}` is frozen, and its batch norm still runs in training mode: the running statistics change here."
        if switch is None
        else f"This puts the batch norm of the frozen `{name}` into training mode; {line} changes its statistics."
    )
    return told(
        record,
        RULE,
        site if switch is None else switch,
        (
            first_words,
            f"None of its {len(parameters)} parameters is trained, yet its output drifts with every batch.",
            f"Call `{name}.eval()`, also after each `train()` of a model that holds it.",
        ),
        binding=name,
        moments=[lookup(record).moments[0].moment],
        region=None if written is None or switch is not None else region_in(record, written[0], written[1]),
        related=(("the running statistics change here", None if switch is None else site),),
        evidence={"frozen": parameters[:16], "training": True, "calls": len(calls)},
        fixes=fixes,
    )
