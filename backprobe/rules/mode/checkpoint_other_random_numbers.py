"""BP616 checkpoint-other-random-numbers: a checkpoint draws other random numbers when it computes its block again.

What it finds:
    `checkpoint(..., preserve_rng_state=False)` around a block in which dropout drops. The block ran once in the forward
    pass and once more in the backward call, and dropout drew in both. The finding stands at the call.

Why it matters:
    The gradient is that of another network than the one whose loss was computed: what was dropped forward gets a
    gradient, what was kept gets none. Nothing raises, and training is noisier than it need be.

What PyTorch does:
    By default a checkpoint keeps the state of the random number generators and restores it before it computes the block
    again. Without that the generators go on from where they are. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    block, head = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5)), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
    for x in torch.randn(3, 6, 4):
        optimizer.zero_grad()
        y = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)  # <- here
        head(y).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    block, head = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5)), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
    for x in torch.randn(3, 6, 4):
        optimizer.zero_grad()
        y = checkpoint(block, x, use_reentrant=False)
        head(y).pow(2).mean().backward()
        optimizer.step()

Near miss: the block draws nothing
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    block, head = nn.Sequential(nn.Linear(4, 8), nn.Softmax(-1)), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
    for x in torch.randn(3, 6, 4):
        optimizer.zero_grad()
        y = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
        head(y).pow(2).mean().backward()
        optimizer.step()

Near miss: its dropout is off
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    block, head = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.0), nn.Linear(8, 8), nn.Tanh()), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
    for x in torch.randn(3, 6, 4):
        optimizer.zero_grad()
        y = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)
        head(y).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Random numbers that the block draws otherwise, as by `torch.rand_like`; a keyword that is a variable.

Source:
    torch.utils.checkpoint.checkpoint in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.backward_order import call_begun_before
from backprobe.rules.analysis.modules.checkpoints import checkpoint_calls, written_call
from backprobe.rules.analysis.source.expressions import keyword, with_keyword
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, WatchedCall
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="checkpoint-other-random-numbers",
    code="BP616",
    since="0.2",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("call", "backward"),
    explains=("gradient-not-derivative",),
)

_DRAWS: Final = frozenset(
    f"torch.nn.functional.{name}"
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
)
_KEYWORD: Final = "preserve_rng_state"


def check(record: Record) -> Iterator[Finding]:
    """One finding per checkpoint call that keeps no random state, where dropout drops again in a backward call."""
    again = [
        call for call in record.watched_calls if call.function in _DRAWS and _is_on(call) and _is_again(record, call)
    ]
    for site, calls in checkpoint_calls(record).items() if again else ():
        part = written_call(record, site, calls[0].col)
        given = None if part is None else keyword(part, _KEYWORD)
        if part is not None and given is not None and _is_false(given.value):
            yield _finding(record, site, part, calls, again)


def _is_on(call: WatchedCall) -> bool:
    return call.arguments.get("training", True) is not False and call.arguments.get("p", 0.5) != 0


def _is_again(record: Record, call: WatchedCall) -> bool:
    """The call was made within a backward call."""
    around = None if call.moment is None else call_begun_before(record, call.moment)
    return around is not None and around.moment_after is not None and (call.moment or 0) < around.moment_after


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _finding(record: Record, site: int, part: ast.Call, calls: list[WatchedCall], again: list[WatchedCall]) -> Finding:
    row = site_of(record, site)
    block = ast.unparse(part.args[0]) if part.args else "the block"
    edit = with_keyword(record, row, part, _KEYWORD, "True")
    return told(
        record,
        RULE,
        site,
        (
            f"`{block}` is computed again in the backward call, and its dropout drops other elements there.",
            "The gradient belongs to another forward pass than the loss.",
            f"Leave `{_KEYWORD}` at its default, True.",
        ),
        binding=block,
        moments=[call.moment or 0 for call in calls],
        region=region_in(record, row.source, part),
        related=(("dropout draws here, in the backward call too", again[0].site),),
        evidence={"drawn_again": len(again), _KEYWORD: False},
        fixes=(Fix(title="Keep the random state", safety="safe", edits=(edit,)),),
    )
