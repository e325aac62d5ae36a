"""The edit by which a program keeps a value without its history: `.item()` of a number, `.detach()` of others."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import insertion, replacement
from backprobe.rules.analysis.source.syntax import Tree, region_in, trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site
    from backprobe.rules.analysis.calls.handed_arguments import Handed
    from backprobe.rules.analysis.graph.retained_values import Operand
    from backprobe.rules.framework.finding import Edit


def number_of(
    record: Record, site: Site, operand: Operand, *, collected: bool = False, as_tensor: bool = False
) -> Edit:
    """The operand as a number, `loss.item()`, where it has one element; else `.detach()`.

    Args:
        collected: It goes into a container: also `.detach()` where the program wants tensors of one.
        as_tensor: `.detach()` in any case.
    """
    region = region_in(record, site.source, operand.part)
    is_tensor = as_tensor or (collected and _wants_tensors(record))
    is_number = lookup(record).tensors[operand.tensor].numel == 1 and not is_tensor
    return insertion(record, site, region.end_line, region.end_col, f".{'item' if is_number else 'detach'}()")


_OF_TENSORS: Final = frozenset({"clone", "cpu", "detach", "item", "numpy", "to", "tolist"})
_OF_LISTS: Final = frozenset({"cat", "concat", "hstack", "stack", "vstack"})


@table
def _wants_tensors(record: Record) -> bool:
    """The program goes over elements of something and calls a tensor's method on them, or joins tensors of a list."""
    return any(_joins(one) or _calls_elements(one) for one in trees(record).values())


def _joins(tree: Tree) -> bool:
    calls = (node for node in tree.parents if isinstance(node, ast.Call) and node.args)
    return any(
        isinstance(node.func, ast.Attribute)
        and node.func.attr in _OF_LISTS
        and isinstance(node.args[0], ast.Name | ast.Attribute | ast.Subscript | ast.ListComp)
        for node in calls
    )


def is_read_as_tensor(tree: Tree, name: str) -> bool:
    """The file reads a tensor's method of what it calls so: `self.mean.item()`."""
    reads = (node for node in tree.parents if isinstance(node, ast.Attribute) and node.attr in _OF_TENSORS)
    return any(ast.unparse(node.value) == name for node in reads)


def _calls_elements(tree: Tree) -> bool:
    read = {
        node.value.id
        for node in tree.parents
        if isinstance(node, ast.Attribute) and node.attr in _OF_TENSORS and isinstance(node.value, ast.Name)
    }
    return any(
        isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name) and node.target.id in read
        for node in tree.parents
    )


def handed_without(record: Record, handed: Handed, remedy: str) -> Edit:
    """An argument as it is handed in, with `.detach()` or what else takes its history off."""
    text = ast.unparse(handed.part)
    is_whole = isinstance(handed.part, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    region = region_in(record, handed.site.source, handed.part)
    return replacement(record, handed.site, region, f"{text}{remedy}" if is_whole else f"({text}){remedy}")
