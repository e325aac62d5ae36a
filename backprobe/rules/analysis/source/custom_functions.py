"""Custom `autograd.Function` classes of the program: the class in the source, its methods, and what they return."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.syntax import method_called, number_at, parts_of, region_in, statement_at, trees
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Raised, Record, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomFunction:
    """A class of the user's files that derives from `Function`.

    Attributes:
        name: Its own name. source: the file it stands in.
        derivative: Its `backward` or `vjp`; None: it has none of its own.
    """

    name: str
    source: int
    cls: ast.ClassDef
    forward: ast.FunctionDef | None
    derivative: ast.FunctionDef | None

    @property
    def inputs(self) -> list[str]:
        """What `forward` takes behind its `ctx`, by name; `setup_context` means that it takes no `ctx`."""
        if self.forward is None:
            return []
        given = self.forward.args
        names = [one.arg for one in (*given.posonlyargs, *given.args)]
        return names if _method(self.cls, "setup_context") else names[1:]

    @property
    def takes_any_number(self) -> bool:
        """`forward(ctx, *tensors)`: its inputs have no names."""
        return self.forward is not None and self.forward.args.vararg is not None


@table
def custom_functions(record: Record) -> dict[str, CustomFunction]:
    """Those classes by name; a name that two classes have is left out, for the record tells them apart by name only."""
    found: dict[str, list[CustomFunction]] = {}
    for source, tree in trees(record).items():
        for node in tree.nodes:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Function") for base in node.bases):
                derivative = _method(node, "backward") or _method(node, "vjp")
                one = CustomFunction(
                    name=node.name, source=source, cls=node, forward=_method(node, "forward"), derivative=derivative
                )
                found.setdefault(node.name, []).append(one)
    return {name: some[0] for name, some in found.items() if len(some) == 1}


def function_of(record: Record, node: Node) -> CustomFunction | None:
    """The class whose node this is; None for torch's own, a library's, and one of two with the same name."""
    return None if node.custom is None else custom_functions(record).get(node.custom.rpartition(".")[2])


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((one for one in cls.body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def returns(method: ast.FunctionDef | ast.AsyncFunctionDef | None) -> Iterator[ast.Return]:
    """The `return` statements of a function with a value, not those of functions inside it."""
    inner = {
        part
        for one in parts_of(method)
        if one is not method and isinstance(one, ast.FunctionDef | ast.Lambda)
        for part in ast.walk(one)
    }
    for part in parts_of(method):
        if isinstance(part, ast.Return) and part.value is not None and part not in inner:
            yield part


def returned(statement: ast.Return) -> list[ast.expr]:
    """The values of a `return`, one by one."""
    if statement.value is None:
        return []
    return list(statement.value.elts) if isinstance(statement.value, ast.Tuple) else [statement.value]


def returned_is_opaque(statement: ast.Return) -> bool:
    """A name or a call: how many values it stands for is not to be seen."""
    return isinstance(statement.value, ast.Name | ast.Call) or any(
        isinstance(one, ast.Starred) for one in returned(statement)
    )


def header(record: Record, function: CustomFunction) -> Region:
    """`class Name(torch.autograd.Function)`: the class without its body."""
    region = region_in(record, function.source, function.cls)
    last = function.cls.bases[-1]
    end = region_in(record, function.source, last)
    return Region(
        start_line=region.start_line, start_col=region.start_col, end_line=end.end_line, end_col=end.end_col + 1
    )


def tensor_inputs(record: Record, node: Node, function: CustomFunction) -> list[int] | None:
    """Which inputs of `forward` were tensors, by place: what torch counts when it speaks of a gradient "at index".

    Of the call of `apply` at the node's statement; None where it cannot be told.
    """
    edges = len(lookup(record).edges_of[node.node])
    if edges == len(function.inputs):
        return list(range(edges))
    site = lookup(record).sites.get(-1 if node.site is None else node.site)
    if site is None:
        return None
    for part in parts_of(statement_at(record, site.site)):
        if isinstance(part, ast.Call) and method_called(part) == "apply":
            places = [at for at, one in enumerate(part.args) if _is_tensor(record, one, site, node.first_seen)]
            if len(places) == edges:
                return places
    return None


def _is_tensor(record: Record, given: ast.expr, site: Site, moment: int) -> bool:
    """A name that holds one, or an operation: of numbers alone there is none in a call of `apply`."""
    if isinstance(given, ast.Name | ast.Attribute | ast.Subscript):
        return tensor_named(record, ast.unparse(given), site, moment) is not None
    return isinstance(given, ast.Call | ast.BinOp)


def class_site(record: Record, function: CustomFunction) -> int | None:
    """A site of the class: its own, else the first inside it, where it stands in a function."""
    inside = (number_at(record, node) for node in ast.walk(function.cls) if isinstance(node, ast.stmt))
    return next((site for site in inside if site is not None), None)


def failed_node(record: Record, raised: Raised) -> Node | None:
    """The node of a custom Function that an exception names, or the only one that its backward call met."""
    if raised.call is None:
        return None
    met = reaches(record)[raised.call].met
    nodes = [row for row in record.nodes if row.node in met and row.custom is not None]
    named = raised.facts.get("op")
    found = [row for row in nodes if row.type == named] or ([] if named else nodes)
    return found[0] if len({row.custom for row in found}) == 1 else None
