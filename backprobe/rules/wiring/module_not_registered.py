"""BP703 module-not-registered: modules in a plain list or dict are trained by nobody.

What it finds:
    Modules hang in a plain list or dict of another module, which calls them in its forward pass. Their parameters
    get gradients, and no optimizer holds them.

Why it matters:
    `parameters()`, `to()`, `train()` and `state_dict()` all pass them by: they stay as they were made, and are
    neither moved nor saved.

What PyTorch does:
    `nn.Module` registers what is assigned to an attribute if it is a Module or Parameter. It does not look into
    lists, dicts and tuples. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.rest = [nn.Linear(4, 4), nn.Linear(4, 1)]  # <- here

        def forward(self, x):
            x = self.first(x)
            for layer in self.rest:
                x = layer(x)
            return x

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.rest = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 1)])

        def forward(self, x):
            x = self.first(x)
            for layer in self.rest:
                x = layer(x)
            return x

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Near miss: a frozen teacher is hidden on purpose
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.student = nn.Linear(3, 4)
            self.hidden = [nn.Linear(3, 4).requires_grad_(False)]

        def forward(self, x):
            return self.student(x) - self.hidden[0](x)

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Near miss: its parameters are given to the optimizer
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.rest = [nn.Linear(4, 1)]

        def forward(self, x):
            return self.rest[0](self.first(x))

    net = Net()
    optimizer = torch.optim.SGD([*net.parameters(), *net.rest[0].parameters()], lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Modules that a closure or a global list holds have no such owner; BP701 names them. So it does where a function of
    another file builds them, or where a class uses it twice.

Source:
    "Extending torch.nn" and torch.nn.ModuleList in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.modules.module_tree import CONTAINERS
from backprobe.rules.analysis.optimizers.parameter_lists import last_name
from backprobe.rules.analysis.source.scopes import Function, scope_of
from backprobe.rules.analysis.source.syntax import site_at, site_of, statement, tree_of, trees
from backprobe.rules.analysis.training.first_values import is_given_values
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="module-not-registered",
    code="BP703",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="manual",
    needs=("module", "optimizer", "grad-life"),
    refines=("parameters-not-in-optimizer",),
)

LEAST_STEPS: Final = 2
"""Steps with a gradient: once is no pattern."""

_ADDS: Final = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
_BUILDERS: Final = frozenset({"list", "tuple", "dict", "set"})
_DICTS: Final = (ast.Dict, ast.DictComp)
_LISTS: Final = (ast.List, ast.ListComp, ast.Tuple, ast.Set, ast.SetComp)


def check(record: Record) -> Iterator[Finding]:
    """One finding per list or dict."""
    by_holder: dict[tuple[int, str, bool], list[tuple[Module, Module]]] = {}
    for module in record.modules:
        around = None if module.fqn or not _parameters(record, module) else _caller(record, module)
        built = None if around is None else _built_at(record, module, around)
        holder = None if built is None else _holder(statement(record, site_of(record, built)))
        if built is not None and around is not None and holder is None:
            built, holder = _given_by_function(record, built, around)
        if built is None or around is None or holder is None or _registers(record, holder[0], around.cls):
            continue
        if _is_left_out(record, module):
            by_holder.setdefault((built, *holder), []).append((module, around))
    for (site, name, is_dict), found in by_holder.items():
        yield _finding(record, site, name, found, is_dict=is_dict)


def _registers(record: Record, name: str, cls: str) -> bool:
    """The class, or a base, gives an attribute of that name a container of torch.nn, which registers its parts."""
    last = name.rpartition(".")[2]
    classes = [node for tree in trees(record).values() for node in tree.nodes if isinstance(node, ast.ClassDef)]
    own = [node for node in classes if node.name == cls.rpartition(".")[2]]
    bases = {last_name(base) for node in own for base in node.bases}
    own += [node for node in classes if node.name in bases]
    for node in (node for part in own for node in ast.walk(part)):
        if isinstance(node, ast.Assign):
            named = {one.attr for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Attribute)}
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            made = {last_name(one.func) for one in values if isinstance(one, ast.Call)}
            if last in named and made & CONTAINERS:
                return True
    return False


def _built_at(record: Record, module: Module, around: Module) -> int | None:
    """The statement that builds a module.

    One that was never given a name was first seen in its call: then the one statement of the class around it that adds
    a new module of this class to something.
    """
    seen = None if module.site is None else _added_at(record, module.site) or module.site
    if seen is not None and not isinstance(statement(record, site_of(record, seen)), ast.For):
        return seen
    found = [
        node
        for tree in trees(record).values()
        for cls in tree.nodes
        if isinstance(cls, ast.ClassDef) and cls.name == around.cls.rpartition(".")[2]
        for node in ast.walk(cls)
        if isinstance(node, ast.Expr)
        and _holder(node) is not None
        and module.cls.rpartition(".")[2] in _called_in(node)
    ]
    place = site_at(record, found[0]) if len(found) == 1 else None
    return None if place is None else place.site


def _given_by_function(record: Record, built: int, around: Module) -> tuple[int | None, tuple[str, bool] | None]:
    """Of a module that a function of the program builds: the one statement of the class that puts it into something.

    It uses the function, and has a list or dict around that; or it keeps the list or dict that the function returns.
    """
    node, tree = statement(record, site_of(record, built)), tree_of(record, site_of(record, built))
    function = None if tree is None or node is None else scope_of(tree, node)
    if tree is None or not isinstance(function, Function) or function.name in ("__init__", "forward"):
        return None, None
    returned = _kind(node.value) if isinstance(node, ast.Return) else None
    found: list[tuple[int, tuple[str, bool]]] = []
    classes = (one for one in tree.nodes if isinstance(one, ast.ClassDef) and one.name == around.cls.rpartition(".")[2])
    for one in (part for cls in classes for part in ast.walk(cls) if isinstance(part, ast.Assign | ast.Expr)):
        named = (part for part in ast.walk(one) if isinstance(part, ast.Name | ast.Attribute))
        held = _holder(one)
        if held is None and returned is not None and isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):
            held = ast.unparse(one.targets[0]), returned
        place = site_at(record, one)
        if held is not None and place is not None and any(last_name(part) == function.name for part in named):
            found.append((place.site, held))
    return found[0] if len(found) == 1 else (None, None)


def _added_at(record: Record, built: int) -> int | None:
    """The statement of the same function that puts what one built under a name of its own into a list or dict."""
    node, tree = statement(record, site_of(record, built)), tree_of(record, site_of(record, built))
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if tree is None or node is None or not isinstance(target, ast.Name) or _holder(node) is not None:
        return None
    scope = next((above for above in tree.ancestors(node) if isinstance(above, ast.FunctionDef)), tree.module)
    for one in ast.walk(scope):
        value = one.value if isinstance(one, ast.Assign | ast.Expr) else None
        held = _holder(one) if isinstance(one, ast.Assign | ast.Expr) else None
        given = value.args if isinstance(value, ast.Call) else [value]
        if (
            held is not None
            and held[0].startswith("self.")
            and any(last_name(part) == target.id for part in given if part)
        ):
            place = site_at(record, one) if isinstance(one, ast.stmt) else None
            return None if place is None else place.site
    return None


def _called_in(node: ast.Expr) -> set[str | None]:
    return {last_name(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}


def _holder(node: ast.stmt | None) -> tuple[str, bool] | None:
    """The list or dict that a statement puts what it builds into: its name, and whether it is a dict."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            return ast.unparse(target.value), True
        kind = _kind(node.value)
        return None if kind is None else (ast.unparse(target), kind)
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS:
        return ast.unparse(call.func.value), call.func.attr in ("update", "setdefault")
    return None


def _kind(value: ast.expr | None) -> bool | None:
    """Whether an expression makes a dict; None if neither that nor a list."""
    made = last_name(value.func) if isinstance(value, ast.Call) else None
    if isinstance(value, _DICTS + _LISTS) or made in _BUILDERS:
        return isinstance(value, _DICTS) or made == "dict"
    return None


def _caller(record: Record, module: Module) -> Module | None:
    """The module whose forward pass calls this one, if that is of the program."""
    calls = {call.module_call: call for call in record.module_calls}
    for call in record.module_calls:
        around = calls.get(call.parent) if call.parent is not None and call.module == module.module else None
        if around is not None:
            owner = next(one for one in record.modules if one.module == around.module)
            return owner if owner.user_code else None
    return None


@table
def _inside(record: Record) -> dict[int, set[int]]:
    """By module: itself and those called inside its calls, as a Sequential's parts have no other owner."""
    calls = {call.module_call: call for call in record.module_calls}
    found: dict[int, set[int]] = {}
    for call in record.module_calls:
        around: ModuleCall | None = call
        while around is not None:
            found.setdefault(around.module, {around.module}).add(call.module)
            around = None if around.parent is None else calls.get(around.parent)
    return found


def _parameters(record: Record, module: Module) -> list[int]:
    """The parameters of a module and of what runs inside it, in order."""
    inside = _inside(record).get(module.module, {module.module})
    rows = (row for one in record.modules if one.module in inside for row in one.parameters)
    return list(dict.fromkeys(row.tensor for row in rows if row.tensor is not None))


def _is_left_out(record: Record, module: Module) -> bool:
    """Its own parameters get gradients in several steps, no optimizer holds them, and nothing writes them."""
    stepped = {event.optimizer for event in record.optimizer_events if event.kind == "step"}
    lives = [life for one in _parameters(record, module) if (life := grad_lives(record).get(one))]
    return bool(lives and stepped) and all(
        life.tensor not in in_optimizers(record)
        and not is_given_values(record, life)
        and len(life.steps) >= LEAST_STEPS
        for life in lives
    )


def _finding(record: Record, site: int, name: str, found: list[tuple[Module, Module]], *, is_dict: bool) -> Finding:
    module, around = found[0]
    tensors = [tensor for one, _around in found for tensor in _parameters(record, one)]
    arrivals = grad_lives(record)[tensors[0]].arrivals
    many = f"the {len(found)} modules" if len(found) > 1 else f"the `{module.cls}`"
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` is a plain {'dict' if is_dict else 'list'}: `{around.cls}` does not register {many} in it.",
            f"`parameters()` leaves out their {len(tensors)} parameters, so they get gradients and never change.",
            f"Use `nn.{'ModuleDict' if is_dict else 'ModuleList'}`.",
        ),
        binding=name,
        moments=[row.moment for row in arrivals],
        related=(("gradients arrive from here", arrivals[0].site),),
        evidence={"modules": [one.binding or one.cls for one, _around in found[:16]], "parameters": len(tensors)},
        tensors=tensors,
    )
