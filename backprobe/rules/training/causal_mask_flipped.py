"""BP866 causal-mask-flipped: a triangular mask lets each place see what comes after it, and nothing before.

What it finds:
    A mask is made by `tril` or `triu` and goes into attention in the way that blocks the places before: a lower
    triangle of minus infinities, or of ones where ones are blocked, or an upper one of ones where ones take part. It is
    followed through names, attributes and buffers. The finding stands where the triangle is taken.

Why it matters:
    A language model then reads the very words that it is to predict. The loss falls fast, and what it generates later
    is nonsense: there the words to come are not known.

What PyTorch does:
    Nothing: a mask is a tensor. A mask of numbers is added to the scores. Of truth values, True takes part in
    `scaled_dot_product_attention` and is left out in `nn.MultiheadAttention` and `nn.Transformer`. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    table, out = nn.Embedding(9, 4), nn.Linear(4, 9)
    for ids in torch.randint(0, 9, (3, 2, 6)):
        x = table(ids[:, :-1])
        keep = torch.triu(torch.ones(5, 5))  # <- here
        scores = (x @ x.transpose(1, 2)).masked_fill(keep == 0, float("-inf"))
        logits = out(scores.softmax(-1) @ x)
        nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()

Use instead:
    import torch
    from torch import nn

    table, out = nn.Embedding(9, 4), nn.Linear(4, 9)
    for ids in torch.randint(0, 9, (3, 2, 6)):
        x = table(ids[:, :-1])
        keep = torch.tril(torch.ones(5, 5))
        scores = (x @ x.transpose(1, 2)).masked_fill(keep == 0, float("-inf"))
        logits = out(scores.softmax(-1) @ x)
        nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()

Near miss: the upper triangle is what is blocked
    import torch
    from torch import nn

    table, out = nn.Embedding(9, 4), nn.Linear(4, 9)
    for ids in torch.randint(0, 9, (3, 2, 6)):
        x = table(ids[:, :-1])
        later = torch.ones(5, 5, dtype=torch.bool).triu(1)
        scores = (x @ x.transpose(1, 2)).masked_fill(later, float("-inf"))
        logits = out(scores.softmax(-1) @ x)
        nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()

Near miss: a triangle that is no mask
    import torch
    from torch import nn

    layer = nn.Linear(4, 16)
    for x in torch.randn(3, 8, 4):
        factor = torch.triu(layer(x).view(8, 4, 4))
        (factor @ factor.transpose(1, 2)).pow(2).mean().backward()

Blind spots:
    How a mask is used is read off the source. One that lets a place see one too many, or that goes through a function
    of the program's own, is not judged. A model that reads from the end is found, and is to be allowed by a comment.

Source:
    torch.nn.functional.scaled_dot_product_attention and torch.nn.MultiheadAttention in PyTorch's documentation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.attention_calls import MASK_PLACES, attention_at
from backprobe.rules.analysis.source.scopes import assigned, last_name, scope_of
from backprobe.rules.analysis.source.syntax import Tree, region_in, site_of, statement, tree_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="causal-mask-flipped",
    code="BP866",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("backward", "module"),
)

_TRIANGLES: Final = {"tril": "lower", "triu": "upper", "tril_": "lower", "triu_": "upper"}
_KEEPS: Final = frozenset({
    "bool", "to", "float", "unsqueeze", "view", "expand", "reshape", "type", "contiguous", "cuda", "int", "byte",
    "clone", "detach", "repeat", "type_as",
})  # fmt: skip
"""Methods after which a mask means what it meant."""
_BLOCKING: Final = frozenset({"attn_mask", "mask", "src_mask", "tgt_mask"})
"""Parameters of torch's attention modules by which a mask of truth values is handed in."""
_DEEPEST: Final = 3
"""Names of names that are followed to what they are assigned, the triangle itself the first."""
_LARGE: Final = 1e3
"""A number under minus this is what a blocked score is filled with."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per expression that takes a triangle."""
    if not record.backward_calls:
        return
    found: dict[tuple[int, int, int], list[Operation]] = {}
    for row in record.operations:
        if row.function.rpartition(".")[2] in _TRIANGLES:
            found.setdefault((row.statement, row.line, row.col), []).append(row)
    for rows in found.values():
        call = _call_at(record, rows[0])
        tree = tree_of(record, site_of(record, rows[0].statement))
        if call is not None and tree is not None and _blocks_the_past(record, tree, call):
            yield _finding(record, rows, call)


def _call_at(record: Record, row: Operation) -> ast.Call | None:
    """The call of the triangle in its statement."""
    site = site_of(record, row.statement)
    for part in ast.walk(statement(record, site) or ast.Pass()):
        if isinstance(part, ast.Call) and last_name(part.func) in _TRIANGLES:
            region = region_in(record, site.source, part)
            if (region.start_line, region.start_col) == (row.line, row.col):
                return part
    return None


def _blocks_the_past(record: Record, tree: Tree, call: ast.Call) -> bool:
    """The lower triangle is what is blocked, as far as the source shows it."""
    half = _TRIANGLES[last_name(call.func)]
    inner = [part for part in _parts_and_values(record, tree, call) if part is not call]
    if any(isinstance(part, ast.expr) and _is_far_below(record, tree, part) for part in inner):
        return half == "lower"
    if not any(isinstance(part, ast.Call) and last_name(part.func) in ("ones", "ones_like") for part in inner):
        return False
    blocked = {one for one in _uses(record, tree, call, set(), ones=True) if one is not None}
    wanted = half == "lower"
    return blocked == {wanted}


def _parts_and_values(record: Record, tree: Tree, top: ast.expr) -> list[ast.AST]:
    """The parts of an expression, and those of what its names are assigned, and the names in that."""
    found: list[ast.AST] = []
    level: list[ast.expr] = [top]
    for _deep in range(_DEEPEST):
        parts = [part for one in level for part in ast.walk(one)]
        found += parts
        level = [value for part in parts if isinstance(part, ast.Name) for value in _assigned(record, tree, part)]
    return found


def _assigned(record: Record, tree: Tree, name: ast.Name) -> Iterator[ast.expr]:
    """What a name is assigned in its function, or outside of all."""
    for scope in dict.fromkeys((scope_of(tree, name), tree.module)):
        for row in assigned(record).get((scope, name.id), ()):
            if any(isinstance(one, ast.Name) and one.id == name.id for one in row.targets):
                yield row.value


def _uses(
    record: Record, tree: Tree, start: ast.expr, seen: set[tuple[ast.expr, bool]], *, ones: bool
) -> Iterator[bool | None]:
    """At each use of a mask whether what was 1 in the triangle is blocked; None where that is not known.

    Args:
        seen: Where the mask was read before, and what was true of it: names may be assigned to each other in a circle.
        ones: What was 1 is true of the expression; False: it was turned round on the way.
    """
    if (start, ones) in seen:
        return
    seen.add((start, ones))
    inner: ast.expr = start
    for above in tree.ancestors(start):
        if isinstance(above, ast.Attribute) and above.attr in ("T", "mT"):
            yield None
            return
        if isinstance(above, ast.Attribute | ast.keyword):
            continue
        if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and _holds(above.func.value, inner):
            if above.func.attr == "logical_not":
                ones = not ones
            elif above.func.attr not in _KEEPS:
                yield None
                return
        elif isinstance(above, ast.Call):
            for load in _buffer_loads(tree, above, inner):
                yield from _uses(record, tree, load, seen, ones=ones)
            yield _blocks_in(record, tree, above, inner, ones=ones, modules=attention_at(record, tree, above))
            return
        elif isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Invert):
            ones = not ones
        elif isinstance(above, ast.Compare):
            ones = ones if _is_true_of_ones(above) else not ones
        elif isinstance(above, ast.Assign) and len(above.targets) == 1:
            for load in _loads(tree, above.targets[0]):
                yield from _uses(record, tree, load, seen, ones=ones)
            return
        elif not isinstance(above, ast.Subscript):
            yield None
            return
        inner = above


def _holds(node: ast.AST, part: ast.AST) -> bool:
    return any(one is part for one in ast.walk(node))


def _is_true_of_ones(node: ast.Compare) -> bool:
    """`mask == 1`, `mask != 0` and `mask > 0` are true where the mask is 1; `mask == 0` and `mask < 1` are not."""
    value = node.comparators[0].value if isinstance(node.comparators[0], ast.Constant) else None
    if isinstance(node.ops[0], ast.Eq):
        return bool(value)
    return isinstance(node.ops[0], ast.Gt | ast.GtE) or (isinstance(node.ops[0], ast.NotEq) and not value)


def _blocks_in(
    record: Record, tree: Tree, call: ast.Call, part: ast.expr, *, ones: bool, modules: frozenset[str]
) -> bool | None:
    """Whether a call blocks what was 1 in the triangle.

    Args:
        modules: The classes of torch's attention modules that ran in its statement.
    """
    name = last_name(call.func)
    if name in ("masked_fill", "masked_fill_") and call.args:
        fill = call.args[-1]
        is_mask = _holds(call.args[0], part) or (len(call.args) > 2 and _holds(call.args[1], part))
        return ones if is_mask and _is_far_below(record, tree, fill) else None
    if name == "where" and len(call.args) == 3 and _holds(call.args[0], part):
        kept_apart = [_is_far_below(record, tree, one) for one in call.args[1:]]
        return None if not any(kept_apart) else not ones if kept_apart[1] else ones
    keyword = next((one.arg for one in call.keywords if _holds(one.value, part)), None)
    if name == "scaled_dot_product_attention" and keyword == "attn_mask":
        return not ones
    if keyword is not None:
        return ones if modules and keyword in _BLOCKING else None
    place = next((number for number, one in enumerate(call.args) if _holds(one, part)), None)
    if name == "scaled_dot_product_attention":
        return not ones if place == 3 else None
    return ones if any(place in MASK_PLACES[one] for one in modules) else None


def _buffer_loads(tree: Tree, call: ast.Call, part: ast.expr) -> list[ast.expr]:
    """Where a buffer that a call registers is read in its class: `self.causal` of `register_buffer("causal", mask)`."""
    name = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if last_name(call.func) != "register_buffer" or _holds(call.args[0], part) or not isinstance(name, str):
        return []
    around = next((above for above in tree.ancestors(call) if isinstance(above, ast.ClassDef)), None)
    text = f"self.{name}"
    return [
        one for one in ast.walk(around or ast.Pass()) if isinstance(one, ast.Attribute) and ast.unparse(one) == text
    ]


def _is_far_below(record: Record, tree: Tree, node: ast.expr) -> bool:
    """Minus infinity, or a number far below any score: `float("-inf")`, `-torch.inf`, `-1e9`, `torch.finfo(d).min`.

    Also a name that is assigned nothing else.
    """
    if isinstance(node, ast.Name):
        values = [one for one in _assigned(record, tree, node) if not isinstance(one, ast.Name)]
        return bool(values) and all(_is_far_below(record, tree, one) for one in values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = node.operand
        is_large = isinstance(value, ast.Constant) and isinstance(value.value, int | float) and value.value >= _LARGE
        return is_large or (isinstance(value, ast.Attribute | ast.Name | ast.Call) and "inf" in ast.unparse(value))
    return ast.unparse(node).replace('"', "'") == "float('-inf')" or ast.unparse(node).endswith(").min")


def _loads(tree: Tree, target: ast.expr) -> list[ast.expr]:
    """Where the name or attribute that is assigned is read: in the same function; an attribute in the whole file."""
    if not isinstance(target, ast.Name | ast.Attribute):
        return []
    text = ast.unparse(target)
    return [
        part
        for part in tree.nodes
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load) and ast.unparse(part) == text
        and (isinstance(target, ast.Attribute) or scope_of(tree, part) is scope_of(tree, target))
    ]  # fmt: skip


def _finding(record: Record, rows: list[Operation], call: ast.Call) -> Finding:
    site = site_of(record, rows[0].statement)
    text = ast.unparse(call)
    shown = text if len(text) <= 60 else f"{ast.unparse(call.func)}(...)"
    other = {"tril": "triu", "triu": "tril"}[last_name(call.func).rstrip("_")]
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{shown}` makes a mask that blocks what comes before each place, and leaves what comes after.",
            "A model that predicts the next place reads it: training looks good, and generation fails.",
            f"Take `{other}`, or transpose the mask.",
        ),
        binding=last_name(call.func),
        moments=[row.moment or 0 for row in rows],
        region=region_in(record, site.source, call),
        evidence={"times": len(rows), "assumed": "each place is meant to see those before it"},
    )
