"""BP105 requires-grad-on-integer: a tensor of integers is told to require grad.

What it finds:
    `requires_grad=True`, `requires_grad_()` or `nn.Parameter` on a tensor whose dtype is an integer or bool, which
    raises. The finding stands at the statement that chose the dtype: most often numbers without a point.

Why it matters:
    The program stops. Where the flag is set in a constructor far from the numbers, the message names neither.

What PyTorch does:
    `torch.tensor([3, 1])`, `arange(5)` and `randint` give int64. Only floating point and complex tensors can require
    grad; anything else raises "only Tensors of floating point dtype can require gradients" in one of four wordings.
    Seen in torch 2.13.

Example:
    import torch

    coefficients = torch.tensor([3, -1, 2], requires_grad=True)  # <- here
    grid = torch.linspace(-1, 1, 21)
    loss = (coefficients[0] + coefficients[1] * grid).square().sum()
    loss.backward()

Use instead:
    import torch

    coefficients = torch.tensor([3.0, -1.0, 2.0], requires_grad=True)
    grid = torch.linspace(-1, 1, 21)
    loss = (coefficients[0] + coefficients[1] * grid).square().sum()
    loss.backward()

Near miss: indices and labels are integers, and nobody asks for their gradient
    import torch
    from torch import nn

    table = nn.Embedding(5, 2)
    words, labels = torch.tensor([3, 1, 2]), torch.tensor([0, 1, 1])
    nn.functional.cross_entropy(table(words), labels).backward()

Near miss: the dtype is given beside whole numbers
    import torch

    start = torch.tensor([3, -1, 2], dtype=torch.float32, requires_grad=True)
    start.square().sum().backward()

Near miss: a parameter of integers that requires no grad
    import torch
    from torch import nn

    steps = nn.Parameter(torch.arange(4), requires_grad=False)

Blind spots:
    An exception that the program catches is its own decision and is not recorded.

Source:
    torch.Tensor.requires_grad_ and "Tensor Attributes" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.expressions import outermost, with_keyword
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.syntax import method_called, parts_of, site_of, statement, statement_at, value_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="requires-grad-on-integer",
    code="BP105",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "binding", "site"),
)

_ASKS: Final = frozenset({"requires_grad", "requires_grad_", "data", "grad"})
_CHOOSES: Final = frozenset({
    "long", "int", "short", "bool", "byte", "char", "to", "type", "type_as", "argmax", "argmin", "argsort",
})  # fmt: skip
"""Methods that choose another dtype, or may."""

_FURTHEST: Final = 16
"""Views and sums that are followed back."""

_MAKERS: Final = frozenset({
    "torch.tensor", "torch.arange", "torch.zeros", "torch.ones", "torch.full", "torch.empty", "torch.randint",
    "torch.eye",
})  # fmt: skip
"""Functions of torch that take `dtype=`."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "integer-requires-grad", "data-of-other-kind"):
        if raised.site is not None:
            yield _finding(record, raised, site_of(record, raised.site))


def _flagged(node: ast.stmt | None) -> ast.expr | None:
    """The expression that is to require grad: `t` of `t.requires_grad_()`, of `nn.Parameter(t)`; None for others."""
    for part in parts_of(node):
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Attribute):
            target = part.targets[0]
            if target.attr in _ASKS:
                return part.value if target.attr == "data" else target.value
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _ASKS:
            return part.func.value
        if isinstance(part, ast.Call) and method_called(part) == "Parameter":
            return [*part.args, *(given.value for given in part.keywords)][0]
    return None


def _born(record: Record, flagged: ast.expr | None, site: Site, moment: int) -> int | None:
    """The integer tensor that the flagged expression takes its dtype from; None where it chooses one itself."""
    while flagged is not None and method_called(flagged) not in _CHOOSES:
        tensor = tensor_named(record, ast.unparse(flagged), site, moment)
        if tensor is not None:
            return tensor
        if isinstance(flagged, ast.Call):
            flagged = flagged.func
        flagged = flagged.value if isinstance(flagged, ast.Attribute | ast.Subscript) else None
    return None


def _chosen_at(record: Record, tensor: int) -> Site | None:
    """The assignment that chose the dtype of an integer tensor: views and sums of one keep it."""
    index = lookup(record)
    for _ in range(_FURTHEST):
        site = index.sites.get(index.tensors[tensor].site or 0)
        bound = index.bindings_of[tensor][:1]
        same = [one for row in bound for one in row.parents if is_whole(record, one)]
        if not same or any(
            method_called(part) in _CHOOSES for part in parts_of(statement_at(record, site and site.site))
        ):
            return site if site is not None and site.kind in ("assign", "return") else None
        tensor = same[0]
    return None


def is_whole(record: Record, tensor: int) -> bool:
    """Its dtype is an integer or bool."""
    return lookup(record).tensors[tensor].dtype.startswith(("int", "uint", "bool"))


def _finding(record: Record, raised: Raised, surfaced: Site) -> Finding:
    index = lookup(record)
    node = statement(record, surfaced)
    flagged = _flagged(node)
    moment = raised.moment or 0
    tensor = _born(record, flagged, surfaced, moment)
    site = (_chosen_at(record, tensor) if tensor is not None else None) or surfaced
    name = ast.unparse(flagged) if isinstance(flagged, ast.Name | ast.Attribute) else None
    name = name or next((target.removesuffix(".requires_grad") for target in surfaced.targets), "this tensor")
    kind = (
        "integers"
        if tensor is None
        else f"{index.tensors[tensor].dtype} since {outermost(value_of(statement(record, site)))}"
    )
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{name}` is to require grad, but it is a tensor of {kind}.",
            "Integers have no derivative: only floating point and complex tensors can require grad.",
            "Write the numbers with a point, or give `dtype=torch.float32` where the tensor is made.",
        ),
        binding=name,
        moments=[moment],
        related=(("raised here: it is told to require grad", surfaced.site if site is not surfaced else None),),
        evidence={"dtype": kind.partition(" ")[0], "raised": raised.message[:120]},
        fixes=tuple(_fixes(record, site)),
        tensors=() if tensor is None else (tensor,),
        level=level_of(record, raised),
    )


def _fixes(record: Record, site: Site) -> Iterator[Fix]:
    """`dtype=torch.float32` for the call of torch that makes the tensor."""
    for part in parts_of(statement(record, site)):
        if isinstance(part, ast.Call) and dotted(record, site, part.func) in _MAKERS:
            torch = ast.unparse(part.func).rpartition(".")[0] or "torch"
            edit = with_keyword(record, site, part, "dtype", f"{torch}.float32")
            yield Fix(title="Make it a tensor of floats", safety="unsafe", edits=(edit,))
