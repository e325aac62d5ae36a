"""Forward hooks that hand a detached output back: what the module gives has no history from then on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.hook_code import hook_function, hook_lambda, source_of_hook
from backprobe.rules.analysis.modules.training_modes import called_modules
from backprobe.rules.analysis.source.break_syntax import Ending
from backprobe.rules.analysis.source.custom_functions import returns
from backprobe.rules.analysis.source.scopes import Function, parameters_of, root_name
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Hook, Record

_GIVE_BACK: Final = frozenset({"setdefault"})
"""Methods of containers that give back what they store."""


@table
def hook_cuts(record: Record) -> dict[int, tuple[Ending, int]]:
    """By module: what a forward hook returns in place of the output, without its history; and the file."""
    found: dict[int, tuple[Ending, int]] = {}
    for hook in record.hooks:
        source = source_of_hook(record, hook)
        if hook.kind == "module-forward" and hook.module is not None and source is not None:
            for value in _detached(record, hook):
                ending = Ending(kind="detach", node=value, how=f"the hook's `{ast.unparse(value)[:40]}`")
                found.setdefault(hook.module, (ending, source))
    return found


@table
def hooks_at(record: Record) -> dict[ast.expr, list[tuple[int, Function]]]:
    """The functions that forward hooks call in a call expression of the program, each with its file."""
    found: dict[ast.expr, list[tuple[int, Function]]] = {}
    for hook in record.hooks:
        source = source_of_hook(record, hook)
        function = hook_function(record, hook) if hook.kind == "module-forward" else None
        for part, modules in called_modules(record).items() if function is not None else ():
            if function is not None and source is not None and hook.module in modules:
                found.setdefault(part, []).append((source, function))
    return found


def _detached(record: Record, hook: Hook) -> Iterator[ast.expr]:
    """The values that the hook returns and that it made of its output by `detach()` or `.data`."""
    function, anonymous = hook_function(record, hook), hook_lambda(record, hook)
    if function is not None:
        given = parameters_of(function)
        for one in returns(function):
            if one.value is not None and given and _is_detached(_made(function, one.value), given[-1]):
                yield one.value
    elif anonymous is not None and _is_detached(anonymous.body, "".join(one.arg for one in anonymous.args.args[-1:])):
        yield anonymous.body


def _made(function: ast.FunctionDef | ast.AsyncFunctionDef, value: ast.expr) -> ast.expr:
    """What the function assigned to a name or an element before it returned it; the value itself where it did not."""
    text = ast.unparse(value)
    for part in ast.walk(function):
        if isinstance(part, ast.Assign) and any(ast.unparse(target) == text for target in part.targets):
            return part.value
    return value


def _is_detached(value: ast.expr, output: str) -> bool:
    """`output.detach()`, further methods of it, or what gives back such a one that it stores."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _GIVE_BACK:
        return any(_is_detached(one, output) for one in value.args)
    inner, cut = value, False
    while isinstance(inner, ast.Call | ast.Attribute | ast.Subscript):
        cut = cut or (isinstance(inner, ast.Attribute) and inner.attr in ("detach", "data"))
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    return cut and root_name(value) == output
