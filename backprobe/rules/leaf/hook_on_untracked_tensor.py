"""BP112 hook-on-untracked-tensor: a hook, or `retain_grad()`, is asked of a tensor that no gradient will come to.

What it finds:
    `register_hook`, `retain_grad` or `register_post_accumulate_grad_hook` raised: the tensor requires no grad, or is no
    leaf where one is needed. The finding stands where the history of the tensor ends; else at the call.

Why it matters:
    The program stops. Where the tensor should have had a history, the hook is not the mistake.

What PyTorch does:
    A hook runs when the gradient of its tensor is computed; a tensor that does not require grad has none, and torch
    refuses the hook. Hooks behind the accumulation are for leaves only. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 6), nn.Linear(6, 1)
    with torch.no_grad():  # <- here
        features = encoder(torch.randn(8, 6))
    features.register_hook(print)
    head(features).mean().backward()

Use instead:
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 6), nn.Linear(6, 1)
    features = encoder(torch.randn(8, 6))
    features.register_hook(print)
    head(features).mean().backward()

Near miss: the program asks first
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 6), nn.Linear(6, 1)
    with torch.no_grad():
        features = encoder(torch.randn(8, 6))
    if features.requires_grad:
        features.register_hook(print)
    head(features).mean().backward()

Near miss: a hook on an input that is flagged
    import torch

    image = torch.rand(3, requires_grad=True)
    image.register_hook(print)
    image.square().sum().backward()

Blind spots:
    A history that ends inside a library's code is not seen; the finding then stands at the call.

Source:
    torch.Tensor.register_hook, retain_grad and register_post_accumulate_grad_hook in PyTorch's documentation; observed
    with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.cuts import cut_above
from backprobe.rules.analysis.graph.module_cuts import ModuleCut, module_cut_above
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.syntax import parts_of, site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.training.grad_modes import switched_off_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="hook-on-untracked-tensor",
    code="BP112",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "snapshot", "parents"),
)

_ASKS: Final = frozenset({"register_hook", "retain_grad", "register_post_accumulate_grad_hook"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "retain-grad-refused", "hook-refused", "accumulate-hook-of-non-leaf"):
        if raised.site is not None:
            yield _finding(record, raised, site_of(record, raised.site))


def _asked(node: ast.stmt | None) -> ast.Attribute | None:
    paths = (part for part in parts_of(node) if isinstance(part, ast.Attribute))
    return next((part for part in paths if part.attr in _ASKS), None)


def _finding(record: Record, raised: Raised, surfaced: Site) -> Finding:
    asked = _asked(statement(record, surfaced))
    name = "this tensor" if asked is None else ast.unparse(asked.value)
    method = "a hook" if asked is None else f"`{asked.attr}`"
    tensor = tensor_named(record, name, surfaced, raised.moment or 0)
    cut = None if tensor is None or raised.family == "accumulate-hook-of-non-leaf" else _cut(record, tensor)
    return told(
        record,
        RULE,
        surfaced.site if cut is None else cut.site,
        _message(raised, name, method, cut),
        binding=name,
        moments=[raised.moment or 0],
        region=None if cut is None else cut.region,
        related=(
            (f"`{name}` loses its history here", None if cut is None or cut.region is None else cut.site),
            ("raised here", None if cut is None else surfaced.site),
        ),
        evidence={"family": raised.family, "cut": None if cut is None else cut.how.strip("`")},
        tensors=() if tensor is None else (tensor,),
        level=level_of(record, raised),
    )


def _cut(record: Record, tensor: int) -> ModuleCut | None:
    cut = cut_above(record, tensor)
    if cut is None:
        return module_cut_above(record, tensor)
    off = switched_off_at(record, cut.site)
    return ModuleCut(site=cut.site, how=cut.how, region=None if off is None else off[0])


def _message(raised: Raised, name: str, method: str, cut: ModuleCut | None) -> tuple[str, str, str]:
    if raised.family == "accumulate-hook-of-non-leaf":
        return (
            f"{method} is called on `{name}`, which is computed and stores no gradient.",
            "It runs after a gradient was added to `.grad` of a leaf; for others torch raises.",
            "Use `register_hook`, which runs for computed tensors too.",
        )
    how = "nothing it was made from requires grad" if cut is None else f"{cut.how} ends its history here"
    remedy = "Set `requires_grad` on what it is made from." if cut is None else "Keep it tracked up to there."
    return (
        f"{method} is called on `{name}`, which requires no grad: {how}.",
        "No gradient will come to it, so torch refuses; a hook that waits for one would never run.",
        f"{remedy} Where no gradient is wanted, ask `{name}.requires_grad` first.",
    )
