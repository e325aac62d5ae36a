"""BP615 checkpoint-input-without-grad: a reentrant checkpoint is handed nothing that requires grad.

What it finds:
    `checkpoint(..., use_reentrant=True)` gets only inputs without `requires_grad`, as the first block of a network
    does. Its trained parameters get no gradient. The finding stands at the call.

Why it matters:
    The block never learns. Torch warns once, in a line that is easily lost in a log.

What PyTorch does:
    The reentrant checkpoint is an `autograd.Function`: its output requires grad only if one of its inputs does. It says
    "None of the inputs have requires_grad=True. Gradients will be None". The other variant has no such limit. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    block, head = nn.Sequential(nn.Linear(4, 8), nn.GELU()), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        hidden = checkpoint(block, torch.randn(8, 4), use_reentrant=True)  # <- here
        loss = head(hidden).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    block, head = nn.Sequential(nn.Linear(4, 8), nn.GELU()), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        hidden = checkpoint(block, torch.randn(8, 4), use_reentrant=False)
        loss = head(hidden).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a frozen block
    import warnings

    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    warnings.simplefilter("ignore")
    block, head = nn.Sequential(nn.Linear(4, 8), nn.GELU()).requires_grad_(False), nn.Linear(8, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        hidden = checkpoint(block, torch.randn(8, 4), use_reentrant=True)
        loss = head(hidden).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A block that also gets gradients in another way is not found.

Source:
    torch.utils.checkpoint in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.breaks import wanted
from backprobe.rules.analysis.modules.checkpoints import checkpoint_calls, written_call
from backprobe.rules.analysis.modules.module_sites import modules_by_number, outermost_call
from backprobe.rules.analysis.modules.parameter_uses import owners
from backprobe.rules.analysis.source.expressions import with_keyword
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, WatchedCall
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="checkpoint-input-without-grad",
    code="BP615",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("call", "module", "grad-life", "backward"),
    explains=("requires-grad-forced", "step-without-gradient", "grad-read-when-none", "gradient-not-derivative"),
    refines=("parameter-never-used",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per checkpoint of trained parameters that gets no tracked input."""
    for site, every in checkpoint_calls(record).items():
        calls = [call for call in every if not _is_tracked(record, call)]
        robbed = _robbed(record, calls) if calls else []
        if robbed:
            yield _finding(record, site, calls, robbed)


def _is_tracked(record: Record, call: WatchedCall) -> bool:
    """The other variant, or an input that requires grad."""
    if call.arguments.get("use_reentrant") is False:
        return True
    states = (state_at(record, one.tensor, call.moment or 0) for one in call.inputs if one.tensor is not None)
    return any(state is not None and state.requires_grad for state in states)


def _robbed(record: Record, calls: list[WatchedCall]) -> list[int]:
    """The trained parameters that ran without grad mode in these calls, and that no backward call ever reached."""
    sites = {call.site for call in calls}
    handed = {_handed(record, call) for call in calls} - {""}
    ran: set[int] = set()
    classes: set[str] = set()
    modules = modules_by_number(record)
    off = [one for one in record.module_calls if not one.grad_mode]
    before = -1
    while before < len(ran):  # a block's own parts are called from its methods, at sites of their own
        before = len(ran)
        for one in off:
            site = outermost_call(record, one).site
            owner, _, function = ("" if site is None else site_of(record, site).function).rpartition(".")
            if site in sites or function in handed or owner.rpartition(".")[2] in classes:
                ran.add(one.module)
                classes |= {modules[one.module].cls.rpartition(".")[2]} if modules[one.module].user_code else set()
    return [leaf for leaf in wanted(record) if ran.intersection(owners(record).get(leaf, ()))]


def _handed(record: Record, call: WatchedCall) -> str:
    """The name of the function of the program that is checkpointed, where it is one."""
    part = written_call(record, call.site or 0, call.col)
    return last_name(part.args[0]) if part is not None and part.args else ""


def _finding(record: Record, site: int, calls: list[WatchedCall], robbed: list[int]) -> Finding:
    row = site_of(record, site)
    part = written_call(record, site, calls[0].col)
    text = "checkpoint" if part is None else ast.unparse(part.func)
    block = ast.unparse(part.args[0]) if part is not None and part.args else "the block"
    edit = None if part is None else with_keyword(record, row, part, "use_reentrant", "False")
    return told(
        record,
        RULE,
        site,
        (
            f"`{text}({block}, ...)` is handed no tensor that requires grad, so `{block}` runs without gradients.",
            f"No backward call reaches {together(record, robbed)}: a reentrant checkpoint passes none on to them.",
            "Pass `use_reentrant=False`.",
        ),
        binding=block,
        moments=[call.moment or 0 for call in calls],
        region=None if part is None else region_in(record, row.source, part),
        evidence={"without_gradient": robbed[:16], "inputs_tracked": 0, "calls": len(calls)},
        fixes=() if edit is None else (Fix(title="Pass `use_reentrant=False`", safety="safe", edits=(edit,)),),
        tensors=robbed,
    )
