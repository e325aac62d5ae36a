"""Differences and products of a column and a row in a loss: from the losses' own calls, and from the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import node_of, op, op_of, operands, walked
from backprobe.rules.analysis.losses.loss_calls import argument_text, loss_calls, region_of_call, shape_of, tensor_given
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup, nodes_like
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Record

_LOSSES: Final = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "gaussian_nll_loss", "poisson_nll_loss")

_POINTWISE: Final = frozenset(
    {"Pow", "Abs", "Mul", "Div", "Neg", "ToCopy", "Clone", "Square", "Sqrt", "Where", "Add", "Maximum", "Minimum"}
    | {"Cosh", "Log", "Log1P", "Sub", "Rsub"}
)
"""What may stand between a difference and its mean or sum in a loss."""

_AFTER_PRODUCT: Final = frozenset({"Neg", "Minimum", "Maximum", "Mul", "Div", "ToCopy", "Clone"})
"""What may stand between a product with a weight for each sample and its mean: others may mean a matrix."""

_AFTER_SUM: Final = frozenset({"Pow", "Abs", "Square", "Neg", "ToCopy", "Clone"})
"""What may stand between a sum with a source for each sample and its mean, as of an equation that is to be zero."""

_KINDS: Final[dict[type[ast.operator], tuple[tuple[str, ...], frozenset[str]]]] = {
    ast.Sub: (("Sub", "Rsub"), _POINTWISE),
    ast.Mult: (("Mul",), _AFTER_PRODUCT),
    ast.Add: (("Add",), _AFTER_SUM),
}
"""The nodes of an operator, and what may follow them."""

_WORDS: Final[dict[type[ast.operator], str]] = {ast.Sub: "difference", ast.Mult: "product", ast.Add: "sum"}
_SUMS: Final = ("+", "-", ".add", ".sub", "torch.add", "torch.sub")

_SHAPING: Final = frozenset(
    {"unsqueeze", "view", "reshape", "expand", "T", "mT", "t", "transpose", "permute", "newaxis", "rearrange", "outer"}
    | {"view_as", "reshape_as", "expand_as", "repeat", "unflatten", "movedim", "swapaxes", "broadcast_to", "atleast_2d"}
)
"""What gives a value its dimensions on purpose."""

_REDUCES: Final = frozenset({"Mean", "Sum", "LinalgVectorNorm", "Norm"})

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast:
    """One difference, product or sum.

    Attributes:
        kind: Which of the three, as a word.
        left, right: The shapes; left_name, right_name: how the program writes the two.
        made_at: The statement that made the left one.
    """

    site: int
    moment: int
    left: Shape
    right: Shape
    result: Shape
    left_name: str
    right_name: str
    tensors: tuple[int, ...]
    region: Region | None = None
    made_at: int | None = None
    kind: str = "difference"


def crossed(left: Shape | None, right: Shape | None) -> Shape | None:
    """The shape of a difference of a column and a row, [N, 1] and [N] or the reverse; None for other shapes.

    The two must agree but for dimensions of size 1, differ in their number, and give more elements than either has.
    """
    if left is None or right is None or len(left) == len(right):
        return None
    if [n for n in left if n != 1] != [n for n in right if n != 1]:
        return None
    size = max(len(left), len(right))
    pairs = zip((1,) * (size - len(left)) + left, (1,) * (size - len(right)) + right, strict=True)
    result = tuple(a if b == 1 else b for a, b in pairs)
    return result if result not in (left, right) and _count(result) > max(_count(left), _count(right)) else None


def _count(shape: Shape) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def broadcasts(record: Record) -> Iterator[Broadcast]:
    """All of them that a backward call walked, in order of their kind."""
    index = lookup(record)
    for call in loss_calls(record, *_LOSSES):
        target = tensor_given(call.call, "target")
        left, right = shape_of(record, call.given), shape_of(record, target)
        result = crossed(left, right)
        if result is not None and left is not None and right is not None and target is not None:
            yield Broadcast(
                site=call.site, moment=call.moment, left=left, right=right, result=result,
                left_name=argument_text(record, call.call, 0, "input"),
                right_name=argument_text(record, call.call, 1, "target"),
                tensors=(call.given, target), region=region_of_call(record, call.call),
                made_at=index.tensors[call.given].site,
            )  # fmt: skip
    for operator in _KINDS:
        yield from _in_graph(record, operator)


def _in_graph(record: Record, operator: type[ast.operator]) -> Iterator[Broadcast]:
    """Operations in the graph with one untracked operand, whose elements are only reduced afterwards.

    Where both are tracked the program compares its own values with each other, each with every one; so it does where
    it takes a matrix of that shape from the result. A parameter times a row, or with one added, is a matrix too.
    """
    kinds, pointwise = _KINDS[operator]
    nodes = lookup(record).nodes
    candidates = nodes_like(record, lambda kind: op_of(kind) in kinds)
    reduced = _reduced(record, pointwise) if candidates else frozenset[int]()
    matrices = _given_matrices(record) if reduced else frozenset[Shape]()
    for node in candidates:
        if node.site is None or node.node not in reduced or not node.outputs or None not in operands(record, node.node):
            continue
        if operator is not ast.Sub and any(
            one is not None and nodes[one].type.endswith("AccumulateGrad") for one in operands(record, node.node)
        ):
            continue
        found = _of_names(record, node, operator)
        if found is not None and found.result not in matrices:
            yield found


@table
def _given_matrices(record: Record) -> frozenset[Shape]:
    """The shapes of untracked matrices that the program adds to tracked ones of that shape, or takes from them."""
    found: set[Shape] = set()
    for row in record.operations:
        shape = None if row.shape is None else tuple(row.shape)
        if row.function in _SUMS and row.requires_grad and shape is not None and len(shape) > 1:
            others = (one for one in row.operands if node_of(record, one) is None)
            if any(shape_of(record, one) == shape for one in others):
                found.add(shape)
    return frozenset(found)


def _reduced(record: Record, pointwise: frozenset[str]) -> frozenset[int]:
    """The nodes from which these operations alone lead to a mean or sum in a graph that was walked."""
    index, found = lookup(record), set[int]()
    known = walked(record)
    waiting = [node.node for node in nodes_like(record, lambda kind: op_of(kind) in _REDUCES) if node.node in known]
    while waiting:
        for one in operands(record, waiting.pop()):
            if one is not None and one not in found:
                found.add(one)
                if op(index.nodes[one]) in pointwise:
                    waiting.append(one)
    return frozenset(found)


def _of_names(record: Record, node: Node, operator: type[ast.operator]) -> Broadcast | None:
    """The operands of an operation by the names in its statement, if their shapes give the node's."""
    site = node.site or 0
    shape = node.outputs[0].shape
    for part, names in _written(record, site, operator):
        given = [_held(record, name, node) for name in names]
        left, right = (shape_of(record, one) for one in given)
        if None in given:
            left, right = _from_graph(record, node, left, right)
        if left is None or right is None:
            left, right = _by_result(part, shape, left, right)
        if crossed(left, right) == shape and left is not None and right is not None:
            tensors = tuple(one for one in given if one is not None)
            moment = node.first_seen
            region = region_in(record, site_of(record, site).source, part)
            made = lookup(record).tensors[given[0]].site if given[0] is not None else None
            return Broadcast(
                site=site, moment=moment, left=left, right=right, result=shape, left_name=_short(names[0]),
                right_name=_short(names[1]), tensors=tensors, region=region, made_at=made,
                kind=_WORDS[operator],
            )  # fmt: skip
    return None


def _written(record: Record, site: int, operator: type[ast.operator]) -> list[tuple[ast.BinOp, tuple[str, str]]]:
    """The uses of an operator in a statement, with the texts of their operands: the same at each turn of a loop."""
    known = _known_operators(record)
    if (site, operator) not in known:
        parts = ast.walk(statement(record, site_of(record, site)) or ast.Pass())
        known[site, operator] = [
            (part, (ast.unparse(part.left), ast.unparse(part.right)))
            for part in parts
            if isinstance(part, ast.BinOp)
            and isinstance(part.op, operator)
            and not isinstance(part.left, ast.Constant)  # a number has no shape
            and not isinstance(part.right, ast.Constant)
        ]
    return known[site, operator]


@table
def _known_operators(
    _record: Record,
) -> dict[tuple[int, type[ast.operator]], list[tuple[ast.BinOp, tuple[str, str]]]]:
    """What `_written` has found, by site and operator."""
    return {}


def _short(text: str) -> str:
    return text if len(text) <= 40 else "the result"


def _from_graph(
    record: Record, node: Node, left: Shape | None, right: Shape | None
) -> tuple[Shape | None, Shape | None]:
    """The shape of a tracked operand that has no name, from its node."""
    slots = operands(record, node.node)
    if len(slots) != 2:
        return left, right
    shapes: list[Shape | None] = [left, right]
    for at, slot in enumerate(slots):
        outputs = lookup(record).nodes[slot].outputs if slot is not None else ()
        if shapes[at] is None and len(outputs) == 1:
            shapes[at] = outputs[0].shape
    return shapes[0], shapes[1]


def _by_result(
    part: ast.BinOp, result: Shape, left: Shape | None, right: Shape | None
) -> tuple[Shape | None, Shape | None]:
    """The shape of an operand without a name, from the result and the other's; as it was where the program may mean it.

    An [N, 1] that gives [N, N] met an [N] or a [1, N]: the second has its dimension written out somewhere, and who does
    that in the operand itself compares all pairs.
    """
    if (left is None) == (right is None):
        return left, right
    known, other = (left, part.right) if left is not None else (right, part.left)
    if known is None or len(result) != 2 or result[0] != result[1] or _writes_dimensions(other):
        return left, right
    shapes: dict[Shape, Shape] = {(result[0], 1): (result[0],), (result[0],): (result[0], 1)}
    guess = shapes.get(known)
    return (known, guess) if left is not None else (guess, known)


def _writes_dimensions(node: ast.expr) -> bool:
    """An expression that gives its value further dimensions, or moves them."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and one.value is None:
            return True
        name = one.attr if isinstance(one, ast.Attribute) else one.id if isinstance(one, ast.Name) else ""
        if name in _SHAPING:
            return True
    return False


def _held(record: Record, name: str, node: Node) -> int | None:
    """The tensor that a name held when the node was made, if it is the one that went in."""
    site = site_of(record, node.site or 0)
    rows = [
        row
        for row in bindings_named(record)[name]
        if row.moment <= node.first_seen and row.function in (site.function, "<module>")
    ]
    if not rows:
        return None
    made = node_of(record, rows[-1].tensor)
    return rows[-1].tensor if made is None or made in operands(record, node.node) else None
