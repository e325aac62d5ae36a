"""BP812 result-dropped: an operation that changes nothing in place stands alone, and its result is thrown away.

What it finds:
    A statement is nothing but a call such as `x.clamp(0, 1)`, `hidden.detach()`, `scores.masked_fill(mask, -inf)` or
    `F.relu(h)`. It gives a new tensor, which nobody keeps.

Why it matters:
    The program reads as if the value were clamped, detached, masked or moved. It is not: what follows uses the old one.

What PyTorch does:
    Only methods whose name ends in `_`, and calls with `inplace=True` or `out=`, write into their tensor. All others
    return a new one, `to`, `cuda` and `detach` among them; of a module `to` works in place. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    critic = nn.Linear(4, 1)
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        (critic(x) - 1).pow(2).mean().backward()
        optimizer.step()
        for weight in critic.parameters():
            weight.data.clamp(-0.01, 0.01)  # <- here

Use instead:
    import torch
    from torch import nn

    critic = nn.Linear(4, 1)
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        (critic(x) - 1).pow(2).mean().backward()
        optimizer.step()
        for weight in critic.parameters():
            weight.data.clamp_(-0.01, 0.01)

Near miss: a module is moved in place, and a value is shown at the end
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU(inplace=True))
    model.to(torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    loss.detach()

Near miss: the tensor has that type already
    import torch
    from torch import nn

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        x.to(torch.float32)
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Results of functions of one's own and of modules are not judged: they may be called for what they do beside.

Source:
    torch.Tensor in PyTorch's documentation, on in-place operations; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement_at, tree_of
from backprobe.rules.analysis.training.trained_parameters import parameters
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="result-dropped",
    code="BP812",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("site", "backward"),
    explains=("graph-carried-across-steps", "second-backward-freed-graph", "step-before-backward"),
)

WITH_TWIN: Final = frozenset({
    "clamp", "clamp_min", "clamp_max", "clip", "mul", "div", "add", "sub", "masked_fill", "masked_scatter", "detach",
    "relu", "sigmoid", "tanh", "scatter", "scatter_add", "index_fill", "index_add", "index_copy", "index_put", "lerp",
    "addcmul", "addcdiv", "nan_to_num", "renorm", "squeeze", "unsqueeze", "transpose", "t", "triu", "tril",
})  # fmt: skip
"""Methods of a tensor that leave it as it is, and have a twin with `_` that does not."""

WITHOUT_TWIN: Final = frozenset({
    "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "type", "type_as", "softmax", "log_softmax",
    "reshape", "view", "permute", "flatten", "contiguous",
})  # fmt: skip

FUNCTIONS: Final = frozenset({
    "relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "softmax", "log_softmax", "dropout", "normalize",
    "layer_norm", "clamp", "clip", "where", "masked_fill", "nan_to_num", "softplus", "pad",
})  # fmt: skip
"""Of `torch` and `torch.nn.functional`."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    found: dict[int, tuple[list[Operation], ast.Call]] = {}
    for row in record.operations if record.backward_calls or record.raised else ():
        if row.is_value and row.result == "tensor" and row.statement not in found:
            call = _standing_alone(record, row)
            if call is not None and _is_pure(record, row, call):
                found[row.statement] = ([], call)
        if row.is_value and row.statement in found:
            found[row.statement][0].append(row)
    for site, (rows, call) in found.items():
        if not any(row.tensor is not None and row.tensor in row.operands for row in rows):
            yield _finding(record, site, rows, call)


def _standing_alone(record: Record, row: Operation) -> ast.Call | None:
    """The call, where it is a statement by itself and not the last one of its file, which a notebook shows."""
    node, tree = statement_at(record, row.statement), tree_of(record, site_of(record, row.statement))
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or tree is None:
        return None
    if node is tree.module.body[-1] or expression_of(record, row) is not node.value:
        return None
    return node.value


def _is_pure(record: Record, row: Operation, call: ast.Call) -> bool:
    """It is a method of a tensor, or a function of torch, that gives a new tensor and does nothing else."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if any(one.arg in ("out", "inplace") for one in call.keywords):
        return False
    full = dotted(record, site_of(record, row.statement), call.func)
    if full is not None:
        return full.rpartition(".")[2] in FUNCTIONS and "nn.init" not in full and len(call.args) < _INPLACE_AT
    return call.func.attr in WITH_TWIN | WITHOUT_TWIN and _is_tensor(record, row, call.func.value)


_INPLACE_AT: Final = 4
"""Arguments by place from which on one of them may be `inplace`."""


def _is_tensor(record: Record, row: Operation, receiver: ast.expr) -> bool:
    """What a method is called on is a tensor, which went in."""
    text, index = ast.unparse(receiver), lookup(record)
    if row.inner and isinstance(receiver, ast.Call | ast.Attribute | ast.Subscript):
        return True
    names = {one.name for tensor in row.operands for one in index.bindings_of[tensor]}
    names |= {fqn for tensor in row.operands if (fqn := index.tensors[tensor].fqn)}
    return text in names or text.partition("[")[0] in names or text.endswith((".grad", ".weight", ".bias"))


def _finding(record: Record, number: int, rows: list[Operation], call: ast.Call) -> Finding:
    site = site_of(record, number)
    said = " ".join(ast.unparse(call).split())
    said = said if len(said) <= 60 else f"{said[:57]}..."
    subject = _subject(record, number, call)
    return told(
        record,
        RULE,
        number,
        (
            f"`{said}` gives a new tensor, which nothing keeps: `{ast.unparse(subject)}` stays as it was.",
            "What follows uses the old value.",
            _advice(call, subject),
        ),
        binding=ast.unparse(subject),
        moments=[max(rows[0].moment or 0, 0)],
        region=region_in(record, site.source, call),
        evidence={"runs": len(rows), "function": rows[0].function},
        fixes=_fixes(record, number, call, subject),
        tensors=sorted({tensor for row in rows for tensor in row.operands})[:16],
    )


def _subject(record: Record, number: int, call: ast.Call) -> ast.expr:
    """What should have changed: the first argument of a function, else what the method is called on."""
    if dotted(record, site_of(record, number), call.func) is not None and call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


def _advice(call: ast.Call, subject: ast.expr) -> str:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in WITH_TWIN and _stays_bound(subject):
        return f"Call `{method}_`, which writes into it."
    return f"Bind the result: `{ast.unparse(subject)} = ...`."


def _stays_bound(subject: ast.expr) -> bool:
    """`p.grad`, `p.data`: the elements are to change, not a name."""
    return isinstance(subject, ast.Attribute) and subject.attr in ("grad", "data")


def _fixes(record: Record, number: int, call: ast.Call, subject: ast.expr) -> Iterator[Fix]:
    site, func = site_of(record, number), call.func
    if not isinstance(func, ast.Attribute):
        return
    whole, before = region_in(record, site.source, func), region_in(record, site.source, func.value)
    if _stays_bound(subject):
        if func.attr in WITH_TWIN and whole.end_line == before.end_line:
            edit = insertion(record, site, whole.end_line, whole.end_col, "_")
            yield Fix(title=f"Call `{func.attr}_`", safety="unsafe", edits=(edit,))
    elif isinstance(subject, ast.Name | ast.Attribute) and _may_be_bound(record, number, subject):
        start, text = region_in(record, site.source, call), ast.unparse(subject)
        edit = insertion(record, site, start.start_line, start.start_col, f"{text} = ")
        yield Fix(title=f"Bind the result to `{text}`", safety="unsafe", edits=(edit,))


def _may_be_bound(record: Record, number: int, subject: ast.expr) -> bool:
    """The name is read again below, and holds no parameter: that is to be written in place."""
    site, text = site_of(record, number), ast.unparse(subject)
    held = (row.tensor for row in record.bindings if row.name == text)
    if any(tensor in parameters(record) for tensor in held):
        return False
    tree = tree_of(record, site)
    later = (part for part in tree.nodes if isinstance(part, ast.Name | ast.Attribute)) if tree else ()
    return any(
        part.lineno > site.end_line and isinstance(part.ctx, ast.Load) and ast.unparse(part) == text for part in later
    )
