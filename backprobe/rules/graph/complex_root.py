"""BP321 complex-root: a backward call starts from a complex number.

What it finds:
    `backward()` or `autograd.grad` was called on a complex root without a gradient for it. The finding stands at that
    call; related is the statement that made the root.

Why it matters:
    The program stops. A complex number cannot be made smaller: only a real one, such as its modulus, is a loss.

What PyTorch does:
    `RuntimeError: grad can be implicitly created only for real scalar outputs but got torch.complex64`. A real loss of
    complex values is differentiated as usual. Seen in torch 2.13.

Example:
    import torch

    kernel = torch.ones(4, requires_grad=True)
    error = torch.fft.fft(kernel).pow(2).mean()
    error.backward()  # <- here

Use instead:
    import torch

    kernel = torch.ones(4, requires_grad=True)
    error = torch.fft.fft(kernel).abs().pow(2).mean()
    error.backward()

Near miss: a gradient for the root is given
    import torch

    kernel = torch.ones(4, requires_grad=True)
    error = torch.fft.fft(kernel).pow(2).mean()
    error.backward(torch.tensor(1.0 + 0.0j))

Blind spots:
    Where the modulus belongs (of each element, or of their mean) is the program's to say: the edit offers the mean's.

Source:
    "Autograd for complex numbers" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.roots import RaisedCall, raised_calls, root_expression
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.graph.nonscalar_root import reduced

if TYPE_CHECKING:
    from backprobe.record import Record, Tensor

RULE = Rule(
    name="complex-root",
    code="BP321",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call that raised over a complex root."""
    for one in raised_calls(record, "complex-root"):
        tensors = [lookup(record).tensors[row.tensor] for row in one.call.roots if row.tensor is not None]
        yield _finding(record, one, next((row for row in tensors if row.dtype.startswith("complex")), None))


def _finding(record: Record, one: RaisedCall, root: Tensor | None) -> Finding:
    expression = root_expression(record, one.site, one.asked)
    named = next((row.name for row in one.call.roots if row.name is not None), None)
    name = named or ("the root" if expression is None else ast.unparse(expression))
    dtype = root.dtype if root is not None else one.raised.facts.get("dtype", "complex").removeprefix("torch.")
    edit = reduced(record, one, expression, "abs")
    made = None if root is None else root.site
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"`{name}` is a complex number ({dtype}): a backward call needs a real one to start from.",
            "What makes a complex number smaller is not defined.",
            "Make the loss real: take `.abs()` of the values, or `.real` of a product with the conjugate.",
        ),
        binding=name,
        moments=[one.call.moment_before],
        related=((f"`{name}` was made here", None if made == one.site.site else made),),
        evidence={"dtype": dtype, "call": one.call.call},
        fixes=[] if edit is None else [Fix(title="Take its modulus", safety="unsafe", edits=(edit,))],
        tensors=[] if root is None else [root.tensor],
        calls=[one.call.call],
        level=level_of(record, one.raised),
    )
