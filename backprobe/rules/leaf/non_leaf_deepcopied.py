"""BP110 non-leaf-deepcopied: `copy.deepcopy` meets a computed tensor that still has its history.

What it finds:
    A deep copy raised because the object holds a tensor that operations on tracked tensors made. The finding stands at
    the statement that stored it there, else at the copy.

Why it matters:
    The program stops, often long after the tensor was stored: a cached activation breaks the copy of a whole model.

What PyTorch does:
    A graph is not copied: only tensors that no operation made support `deepcopy`. A detached tensor does. Seen in torch
    2.13.

Example:
    import copy
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    prediction = model(torch.ones(4, 3))
    summary = {"epoch": 1, "prediction": prediction}  # <- here
    best = copy.deepcopy(summary)

Use instead:
    import copy
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    prediction = model(torch.ones(4, 3))
    summary = {"epoch": 1, "prediction": prediction.detach()}
    best = copy.deepcopy(summary)

Near miss: parameters are leaves
    import copy
    import torch

    model = torch.nn.Linear(3, 1)
    best = copy.deepcopy(model)

Near miss: a number is stored
    import copy
    import torch

    model = torch.nn.Linear(3, 1)
    summary = {"loss": model(torch.ones(4, 3)).sum().item()}
    best = copy.deepcopy(summary)

Blind spots:
    What a library stored in the object is not seen; the finding then stands at the copy.

Source:
    torch.Tensor.__deepcopy__ as seen in torch 2.13, and torch.Tensor.detach in PyTorch's documentation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.named_values import names_in, tensor_named
from backprobe.rules.analysis.source.scopes import root_name
from backprobe.rules.analysis.source.syntax import (
    method_called,
    parts_of,
    region_in,
    site_of,
    statement,
    text_in,
    value_of,
)
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="non-leaf-deepcopied",
    code="BP110",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "binding", "snapshot"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """The statement that put a computed tensor into the object; value: the expression that it stored."""

    tensor: int
    name: str
    site: Site
    value: ast.expr | None


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "copy-of-non-leaf"):
        if raised.site is not None:
            yield _finding(record, raised, site_of(record, raised.site))


def _copied(node: ast.stmt | None) -> list[str]:
    """What is copied, as written: the argument of `deepcopy`, else every name that the statement hands to a call."""
    calls = [part for part in parts_of(node) if isinstance(part, ast.Call)]
    copies = [part for part in calls if method_called(part) == "deepcopy"]
    return [name for part in copies or calls for argument in part.args for name in names_in(argument)]


def _stored(record: Record, owners: list[str], moment: int) -> _Stored | None:
    """The last statement that put a computed tensor into one of these objects, else into an attribute of `self`."""
    inside = [*_bound(record, tuple(f"{owner}{mark}" for owner in owners for mark in ".["), moment)]
    inside += _filled(record, owners, moment)
    found = inside or list(_bound(record, ("self.",), moment))
    return max(found, key=lambda one: lookup(record).bindings_of[one.tensor][-1].moment, default=None)


def _bound(record: Record, beginnings: tuple[str, ...], moment: int) -> Iterator[_Stored]:
    """Attributes and elements: `cache["h"]`, `self.hidden`."""
    for row in record.bindings:
        if row.name.startswith(beginnings) and is_computed(record, row.tensor, moment):
            at = site_of(record, row.site)
            yield _Stored(tensor=row.tensor, name=row.name, site=at, value=_part(record, at, row.tensor, moment))


def _part(record: Record, site: Site, tensor: int, moment: int) -> ast.expr | None:
    """The expression of a statement that is this tensor: an element of a display, else the value; None: not written."""
    value = value_of(statement(record, site))
    if isinstance(value, ast.Dict | ast.List | ast.Tuple | ast.Set):
        return next(
            (one for one in _elements(value) if tensor_named(record, ast.unparse(one), site, moment) == tensor), None
        )
    return value


def _filled(record: Record, owners: list[str], moment: int) -> Iterator[_Stored]:
    """Calls that fill a list, and those that make the object: `cache.append(hidden)`, `Result(out=hidden)`."""
    for row in record.sites:
        value = value_of(statement(record, row))
        if not isinstance(value, ast.Call) or not {*row.targets, root_name(value)}.intersection(owners):
            continue
        for part in _elements(value):
            tensor = tensor_named(record, ast.unparse(part), row, moment)
            if tensor is not None and is_computed(record, tensor, moment):
                yield _Stored(tensor=tensor, name=ast.unparse(part), site=row, value=part)


def _elements(value: ast.expr | None) -> list[ast.expr]:
    if isinstance(value, ast.Dict):
        return list(value.values)
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return list(value.elts)
    return [*value.args, *(given.value for given in value.keywords)] if isinstance(value, ast.Call) else []


def is_computed(record: Record, tensor: int, moment: int) -> bool:
    """It is no leaf, and was seen by then."""
    state = state_at(record, tensor, moment)
    return state is not None and not state.is_leaf


def _finding(record: Record, raised: Raised, surfaced: Site) -> Finding:
    moment = raised.moment or 0
    owners = _copied(statement(record, surfaced))
    itself = [
        one
        for one in owners
        if (held := tensor_named(record, one, surfaced, moment)) is not None and is_computed(record, held, moment)
    ]
    stored = None if itself else _stored(record, owners, moment)
    if stored is not None and stored.site.kind == "enter":  # it was handed in, and the function's first line is not it
        name, stored = stored.name, None
        itself = [name]
    name = itself[0] if itself else "a tensor in it" if stored is None else stored.name
    shown = f"`{name}`" if itself or stored is not None else name
    return told(
        record,
        RULE,
        surfaced.site if stored is None else stored.site.site,
        (
            f"{shown} is copied by `deepcopy`, but it is computed and still has its history.",
            "A graph is not copied, so torch raises.",
            f"Store `{name}.detach()`." if stored is not None else "Copy `.detach().clone()` of it.",
        ),
        binding=name,
        moments=[moment],
        related=(("raised here: the copy", None if stored is None else surfaced.site),),
        evidence={"is_leaf": False, "requires_grad": True, "copied": owners[:4]},
        fixes=tuple(_fixes(record, stored)),
        tensors=() if stored is None else (stored.tensor,),
        level=level_of(record, raised),
    )


def _fixes(record: Record, stored: _Stored | None) -> Iterator[Fix]:
    """`.detach()` behind what is stored, where no other statement reads it there."""
    if stored is None or any(stored.name in row.reads for row in record.sites if row.site != stored.site.site):
        return
    if stored.value is not None:
        region = region_in(record, stored.site.source, stored.value)
        text = text_in(record, stored.site.source, region)
        text = text if isinstance(stored.value, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f"({text})"
        edit = replacement(record, stored.site, region, f"{text}.detach()")
        yield Fix(title="Store it without its history", safety="unsafe", edits=(edit,))
