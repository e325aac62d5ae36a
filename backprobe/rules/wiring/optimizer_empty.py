"""BP705 optimizer-empty: an optimizer was given no parameters.

What it finds:
    The constructor of an optimizer raised "optimizer got an empty parameter list": what it was given yields
    nothing, often a generator that was walked before.

Why it matters:
    The program stops, or its author falls back on a list that is too short.

What PyTorch does:
    `module.parameters()` is a generator: it can be walked once. An optimizer walks what it is given and refuses an
    empty list. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    parameters = model.parameters()
    print(sum(p.numel() for p in parameters))
    optimizer = torch.optim.SGD(parameters, lr=0.1)  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    parameters = list(model.parameters())
    print(sum(p.numel() for p in parameters))
    optimizer = torch.optim.SGD(parameters, lr=0.1)

Near miss: the program catches the exception
    import torch
    from torch import nn

    try:
        torch.optim.SGD(nn.ReLU().parameters(), lr=0.1)
    except ValueError as error:
        print(error)

Blind spots:
    Whether a generator was used up is read off the source: the name is assigned a call of `parameters()`.

Source:
    torch.optim.Optimizer in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.parameter_lists import last_name, optimizer_call, parameters_argument
from backprobe.rules.analysis.source.syntax import region_in, site_at, site_of, tree_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="optimizer-empty",
    code="BP705",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised",),
)

_GENERATORS: Final = frozenset({"parameters", "named_parameters", "filter", "map", "chain"})
"""What gives its elements once."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per constructor that raised."""
    for raised in raised_as(record, "optimizer-of-nothing"):
        if raised.site is not None:
            yield _finding(record, raised, site_of(record, raised.site))


def _finding(record: Record, raised: Raised, site: Site) -> Finding:
    call = optimizer_call(record, site)
    argument = None if call is None else parameters_argument(call)
    made = None if argument is None else _generator(record, site, argument)
    what = "its first argument" if argument is None or len(ast.unparse(argument)) > 40 else f"`{ast.unparse(argument)}`"
    used_up = "it is a generator, which gives its elements once, and was walked before"
    return told(
        record,
        RULE,
        site.site,
        (
            f"This optimizer gets no parameters: {what} is empty{f', since {used_up}' if made is not None else ''}.",
            "There is nothing that it could step.",
            f"Keep a list: `list({ast.unparse(made)})`." if made is not None else "Give it the parameters to train.",
        ),
        binding=what.strip("`"),
        moments=[raised.moment or 0],
        region=None if argument is None else region_in(record, site.source, argument),
        related=(() if made is None else (("the generator is made here", _site(record, site, made)),)),
        evidence={"raised": raised.message, "generator": made is not None},
        level=level_of(record, raised),
    )


def _generator(record: Record, site: Site, argument: ast.expr) -> ast.expr | None:
    """What a name was assigned before, if that can be walked only once."""
    tree = tree_of(record, site)
    for node in tree.nodes if tree is not None and isinstance(argument, ast.Name | ast.Attribute) else ():
        if isinstance(node, ast.Assign) and any(ast.unparse(one) == ast.unparse(argument) for one in node.targets):
            value = node.value
            once = isinstance(value, ast.Call) and last_name(value.func) in _GENERATORS
            if once or isinstance(value, ast.GeneratorExp):
                return value
    return None


def _site(record: Record, site: Site, made: ast.expr) -> int | None:
    tree = tree_of(record, site)
    above = () if tree is None else tree.ancestors(made)
    found = next((one for one in above if isinstance(one, ast.stmt)), None)
    known = None if found is None else site_at(record, found)
    return None if known is None else known.site
