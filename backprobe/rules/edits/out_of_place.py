"""Edits that turn a change in place into a new value, or keep it from being tracked."""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import msgspec

from backprobe.rules.analysis.source.arithmetic import imported_from_torch
from backprobe.rules.analysis.source.expressions import replacement, symbol_of
from backprobe.rules.analysis.source.syntax import region_in, statement, text_in, tree_of
from backprobe.rules.framework.finding import Edit
from backprobe.rules.framework.locations import source_lines

if TYPE_CHECKING:
    from backprobe.record import Record, Site

OUT_OF_PLACE: Final = frozenset({
    "abs", "add", "addcdiv", "addcmul", "ceil", "clamp", "clamp_max", "clamp_min", "cos", "div", "exp", "floor", "log",
    "masked_fill", "mul", "neg", "pow", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "softmax",
    "sqrt", "square", "sub", "tanh", "tril", "triu", "trunc",
})  # fmt: skip
"""Methods that torch has with and without the underscore, and that give the same values."""


def out_of_place(record: Record, site: Site) -> Edit | None:
    """`y += 1` as `y = y + 1`, `y.mul_(2)` as `y = y.mul(2)`; None where the statement is neither of a plain name."""
    node = statement(record, site)
    text = None
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and symbol_of(node.op):
        right = text_in(record, site.source, region_in(record, site.source, node.value))
        right = right if isinstance(node.value, ast.Name | ast.Constant | ast.Call | ast.Attribute) else f"({right})"
        text = f"{node.target.id} = {node.target.id} {symbol_of(node.op)} {right}"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        text = _method_out_of_place(record, site, node.value)
    if node is None or text is None:
        return None
    return replacement(record, site, region_in(record, site.source, node), text)


def _method_out_of_place(record: Record, site: Site, call: ast.Call) -> str | None:
    if not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
        return None
    name, method = call.func.value.id, call.func.attr.removesuffix("_")
    if method == call.func.attr or method not in OUT_OF_PLACE:
        return None
    whole = text_in(record, site.source, region_in(record, site.source, call))
    return f"{name} = {name}.{method}{whole[whole.index('(', len(name)) :]}"


def untracked(record: Record, site: Site) -> Edit | None:
    """The statement inside `with torch.no_grad():`; None where `torch` is not imported or the line has more on it."""
    node = statement(record, site)
    if node is None or imported_from_torch(record).get(site.source, {}).get("torch") != "torch":
        return None
    region = region_in(record, site.source, node)
    lines = source_lines(record)[site.source]
    before = lines[region.start_line - 1][: region.start_col - 1]
    behind = lines[region.end_line - 1][region.end_col - 1 :].strip()
    if before.strip() or (behind and not behind.startswith("#")):
        return None
    text = text_in(record, site.source, region)
    return replacement(record, site, region, f"with torch.no_grad():\n{before}    {text}")


def untracked_run(record: Record, site: Site) -> Edit | None:
    """The statement and those right behind it that write into parts of the same name, under `torch.no_grad()`."""
    node, tree = statement(record, site), tree_of(record, site)
    first = untracked(record, site)
    name = None if node is None else _written_name(node)
    block: list[ast.stmt] = getattr(tree.parents.get(node), "body", []) if tree is not None and node is not None else []
    if first is None or name is None or node not in block:
        return first
    same = list(takewhile(lambda one: _written_name(one) == name, block[block.index(node) :]))
    if len(same) == 1:
        return first
    start, end = region_in(record, site.source, node), region_in(record, site.source, same[-1])
    region = msgspec.structs.replace(start, end_line=end.end_line, end_col=end.end_col)
    lines = text_in(record, site.source, region).split("\n")
    before = " " * (start.start_col - 1)
    body = "\n".join([f"{before}    {lines[0]}", *(f"    {line}" if line.strip() else line for line in lines[1:])])
    return replacement(record, site, region, f"with torch.no_grad():\n{body}")


def _written_name(node: ast.stmt) -> str | None:
    """The name into a part of which a statement writes: `b` of `b[:, 4] += 1`."""
    target = node.target if isinstance(node, ast.AugAssign) else None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        return target.value.id
    return None
