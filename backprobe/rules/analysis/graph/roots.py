"""Backward calls that raised, and the expressions of the program that their roots, inputs and gradients are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.analysis.source.syntax import method_called, parts_of, site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import raised_as

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Raised, Record, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedCall:
    """A backward call that ended with an exception.

    Attributes:
        asked: The call in the source that asked for it: `loss.backward()`. None: hidden, or several stand there.
    """

    raised: Raised
    call: BackwardCall
    site: Site
    asked: ast.Call | None


def raised_calls(record: Record, *families: str) -> Iterator[RaisedCall]:
    """The backward calls of the user's files that raised an exception of these families."""
    for raised in raised_as(record, *families):
        call = lookup(record).calls.get(raised.call) if raised.call is not None else None
        number = call.site if call is not None and call.site is not None else raised.site
        if call is not None and number is not None:
            site = site_of(record, number)
            yield RaisedCall(raised=raised, call=call, site=site, asked=asked_in(record, site))


def asked_in(record: Record, site: Site) -> ast.Call | None:
    """The one call of `backward` or `grad` in a statement; None if there is none, or more."""
    node = statement(record, site)
    found = [part for part in parts_of(node) if isinstance(part, ast.Call) and _asks(record, site, part)]
    return found[0] if len(found) == 1 else None


def _asks(record: Record, site: Site, call: ast.Call) -> bool:
    full = dotted(record, site, call.func)
    if full is not None:
        return full in ("torch.autograd.grad", "torch.autograd.backward")
    return method_called(call) == "backward"


def root_expression(record: Record, site: Site, asked: ast.Call | None) -> ast.expr | None:
    """What a call starts from, as written: `loss` of `loss.backward()` and of `torch.autograd.grad(loss, x)`."""
    if asked is None:
        return None
    if dotted(record, site, asked.func) is not None:
        given = keyword(asked, "outputs") or keyword(asked, "tensors")
        return asked.args[0] if asked.args else None if given is None else given.value
    return asked.func.value if isinstance(asked.func, ast.Attribute) else None


def gradient_expression(record: Record, site: Site, asked: ast.Call | None) -> ast.expr | None:
    """The gradient that a call is given for its root; None if it is given none."""
    if asked is None:
        return None
    of_torch = dotted(record, site, asked.func)
    names = ("grad_outputs", "grad_tensors", "gradient")
    given = next((one for one in asked.keywords if one.arg in names), None)
    if given is not None:
        return given.value
    place = {None: 0, "torch.autograd.grad": 2, "torch.autograd.backward": 1}.get(of_torch, 0)
    return asked.args[place] if len(asked.args) > place else None


def input_expressions(asked: ast.Call | None) -> list[ast.expr]:
    """What a call differentiates by, one expression per tensor as far as they are written out."""
    if asked is None:
        return []
    given = keyword(asked, "inputs")
    if given is None and method_called(asked) != "grad":
        return []
    whole = given.value if given is not None else asked.args[1] if len(asked.args) > 1 else None
    if whole is None:
        return []
    return list(whole.elts) if isinstance(whole, ast.Tuple | ast.List) else [whole]
