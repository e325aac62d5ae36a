"""What the user calls things: tensors, parameters together, optimizers; and the object that a method is called on."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.analysis.training.trained_parameters import parameters, shared_key

if TYPE_CHECKING:
    from backprobe.record import Record

_NAMELESS: Final = re.compile(r"`((?:the|this|a) [a-z][a-z ]{0,30})`")


def called(record: Record, tensor: int) -> str:
    """A tensor's `state_dict` key, else the name it was bound to last, else "a tensor"."""
    index = lookup(record)
    key = parameters(record).get(tensor) or index.tensors[tensor].fqn
    if key:
        return key
    bound = index.bindings_of[tensor]
    return bound[-1].name if bound else "a tensor"


def together(record: Record, tensors: Sequence[int]) -> str:
    """Several tensors in words: `` `net.0.weight` ``, or `` the 4 parameters of `net` ``."""
    names = [called(record, tensor) for tensor in tensors]
    if len(names) == 1:
        return f"`{names[0]}`"
    prefix = shared_key(names)
    if prefix:
        return f"the {len(names)} parameters of `{prefix}`"
    return f"`{names[0]}` and {len(names) - 1} more"


def capital(text: str) -> str:
    """The text with a capital letter where it begins with a letter."""
    return text[:1].upper() + text[1:]


def without_marks(text: str) -> str:
    """The text with what has no name, `the root` say, not marked as one: no expression of a program reads like that."""
    return _NAMELESS.sub(r"\1", text)


def optimizer_name(record: Record, optimizer: int | None) -> str:
    """The name of an optimizer, else its class; "the program" for updates by hand."""
    row = next((one for one in record.optimizers if one.optimizer == optimizer), None)
    return "the program" if row is None else row.binding or row.cls


def receiver(record: Record, site: int | None, method: str) -> str | None:
    """What `method` is called on in a statement, as written: `self.optimizer` of `self.optimizer.step()`."""
    node = None if site is None else statement(record, site_of(record, site))
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == method:
            return ast.unparse(part.func.value)
    return None
