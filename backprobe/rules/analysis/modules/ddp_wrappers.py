"""The `DistributedDataParallel` wrappers of a program: what is inside each, and its parameters."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import site_of, statement, tree_of
from backprobe.rules.analysis.training.trained_parameters import parameters
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """One wrapper.

    Attributes:
        module: The wrapper itself; inner: what it wraps. parameters: of all that is inside.
        first_name: What the program called the inner module where it was handed in; None if it had no name there.
    """

    module: Module
    inner: Module
    parameters: frozenset[int]
    first_name: str | None


@table
def wrappers(record: Record) -> tuple[Wrapper, ...]:
    """The wrappers of torch's own class, in order."""
    found: list[Wrapper] = []
    every = [module for module in record.modules if module.cls == "DistributedDataParallel" and not module.user_code]
    below = [one for one in record.modules if one.fqn is not None and one.fqn.split(".")[0] == "module"]
    for module in every:
        if module.site is None:
            continue
        name = _handed_in(record, module.site)
        inside = [one for one in below if len(every) == 1 or one.site == module.site or _is_of(record, one, name)]
        inner = next((one for one in inside if one.fqn == "module"), None)
        if inner is not None:
            held = frozenset(row.tensor for one in inside for row in one.parameters if row.tensor is not None)
            found.append(Wrapper(module=module, inner=inner, parameters=held, first_name=name))
    return tuple(found)


def is_told_of_unused(record: Record, tensor: int) -> bool:
    """The wrapper around this parameter was built with leave for unused ones, in its call or in what it unpacks."""
    for wrapper in wrappers(record):
        site = site_of(record, wrapper.module.site or 0)
        node, tree = statement(record, site), tree_of(record, site)
        if tensor not in wrapper.parameters or node is None or tree is None:
            continue
        words = [word for part in ast.walk(node) if isinstance(part, ast.Call) for word in part.keywords]
        if any(word.arg in _LEAVE and not _is_off(word.value) for word in words):
            return True
        if any(word.arg is None for word in words) and any(map(_gives_leave, tree.nodes)):
            return True
    return False


_LEAVE: Final = ("find_unused_parameters", "static_graph")
"""Arguments of the wrapper that let parameters go without a gradient."""


def _is_off(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


def _gives_leave(part: ast.AST) -> bool:
    """A dictionary's entry, or a keyword, of such a name."""
    if isinstance(part, ast.Dict):
        pairs = zip(part.keys, part.values, strict=True)
        return any(isinstance(key, ast.Constant) and key.value in _LEAVE and not _is_off(one) for key, one in pairs)
    return isinstance(part, ast.keyword) and part.arg in _LEAVE and not _is_off(part.value)


def _is_of(record: Record, module: Module, name: str | None) -> bool:
    """A module's parameters have keys that begin with this name."""
    keys = [parameters(record).get(row.tensor, "") for row in module.parameters if row.tensor is not None]
    return any(key.startswith(f"{name}.") for key in keys)


def _handed_in(record: Record, site: int) -> str | None:
    """The first argument of the call that builds the wrapper, if it is a name."""
    node = statement(record, site_of(record, site))
    for part in ast.walk(node or ast.Pass()):
        if isinstance(part, ast.Call) and part.args and isinstance(part.args[0], ast.Name | ast.Attribute):
            return ast.unparse(part.args[0])
    return None
