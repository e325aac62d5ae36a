"""BP109 freeze-without-effect: an attribute is set that torch never looks at, and the parameters stay trainable.

What it finds:
    `module.requires_grad = False`, a misspelt flag such as `p.require_grad = False`, or a comparison in place of an
    assignment, `p.requires_grad == False`. The parameters still require grad afterwards. Or the same with `True` or a
    variable, after which they are as frozen, or as trained, as before. The finding stands at that statement.
    Or a loop that sets the flag runs over an iterator that was walked before, and never turns: then it stands where the
    iterator is made.

Why it matters:
    What was to be frozen is trained all the same, or what was to be trained again stays frozen, and nothing says so.

What PyTorch does:
    A module has no flag of its own, and Python lets any attribute be set on a tensor or a module. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, head = nn.Linear(3, 3), nn.Linear(3, 1)
    encoder.requires_grad = False  # <- here
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        encoder.zero_grad()
        head(encoder(torch.randn(4, 3)).detach()).sum().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    encoder, head = nn.Linear(3, 3), nn.Linear(3, 1)
    encoder.requires_grad_(False)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        head(encoder(torch.randn(4, 3))).sum().backward()
        optimizer.step()

Near miss: each parameter's own flag
    import torch
    from torch import nn

    encoder = nn.Linear(3, 3)
    for p in encoder.parameters():
        p.requires_grad = False
    print(encoder(torch.randn(4, 3)).requires_grad)

Near miss: a class that has such a property
    import torch
    from torch import nn


    class Encoder(nn.Linear):
        @property
        def requires_grad(self):
            return self.weight.requires_grad

        @requires_grad.setter
        def requires_grad(self, flag):
            self.requires_grad_(flag)


    encoder = Encoder(3, 3)
    encoder.requires_grad = False
    print(encoder(torch.randn(4, 3)).requires_grad)

Blind spots:
    A module that is reached by a name which the record does not know is not judged: of a function's parameter every
    call must tell which module it gives. An attribute that the program reads somewhere is its own.

Source:
    torch.nn.Module.requires_grad_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.handed_arguments import all_handed_in
from backprobe.rules.analysis.calls.handed_modules import module_called, modules_handed, parameters_of_module
from backprobe.rules.analysis.modules.module_sites import calls_by_number, modules_by_number, outermost_call
from backprobe.rules.analysis.modules.second_names import held_by, module_names
from backprobe.rules.analysis.modules.training_modes import inside
from backprobe.rules.analysis.optimizers.idle_loops import UsedUp, used_up_loops
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.scopes import target_names
from backprobe.rules.analysis.source.syntax import Tree, region_in, site_at, statement, trees
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import region_of
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Module, ModuleCall, Record, Site, Snapshot
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="freeze-without-effect",
    code="BP109",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("module", "snapshot", "site"),
)

_FLAG: Final = "requires_grad"
ALIKE: Final = 0.85
"""Likeness by `difflib` that makes a misspelling: `require_grad` has 0.96, `required_grad` 0.92, `grad` 0.47."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per assignment."""
    moments = {row.site: row.moment for row in reversed(record.moments) if row.site is not None}
    for site in record.sites:
        node = statement(record, site) if site.kind == "assign" else None
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute):
            continue
        owner, moment = ast.unparse(target.value), moments.get(site.site, 0)
        if target.attr == _FLAG and _is_true(node.value):
            kept = _still_frozen(record, site, owner)
            if kept:
                yield _finding_of_frozen(record, site, target, owner, moment, kept)
        tensors = _of_flag(record, site, target)
        if not tensors:
            continue
        if _is_false(node.value):
            if _still_requires(record, tensors):
                yield _finding(record, site, target, owner, moment, module=target.attr == _FLAG)
        elif f"{owner}.{_FLAG}" not in ast.unparse(node.value) and not (target.attr == _FLAG and _is_true(node.value)):
            kept_as = _kept_as(record, tensors, _first_in(record, site))
            if kept_as is not None and not (kept_as and _is_true(node.value)):
                yield _finding_of_any(record, site, target, node.value, frozen=not kept_as)
    for site in record.sites:
        compared = _compared(record, site)
        if compared is not None:
            yield _finding_of_comparison(record, site, compared, moments.get(site.site, 0))
    for used in used_up_loops(record):
        value = _flag_set_in(used.loop)
        place, loop = site_at(record, used.made), site_at(record, used.before)
        if value is not None and place is not None and (not value or _stay_frozen(record)):
            yield _finding_of_loop(record, place, loop, used, value=value)


def _flag_set_in(loop: ast.For) -> bool | None:
    """What a loop sets the flag of its own name to, if it does nothing else."""
    named = set(target_names(loop.target))
    node = loop.body[0] if len(loop.body) == 1 else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        target, value = node.targets[0], node.value
        is_flag = target.attr == _FLAG and ast.unparse(target.value) in named
        return value.value if is_flag and isinstance(value, ast.Constant) and isinstance(value.value, bool) else None
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        given = [*call.args, *(one.value for one in call.keywords)]
        if ast.unparse(call.func.value) in named and all(isinstance(one, ast.Constant) for one in given):
            return all(getattr(one, "value", True) is True for one in given)
    return None


def _stay_frozen(record: Record) -> bool:
    """Something that an optimizer holds required grad once, was frozen, and stayed so while the optimizer stepped."""
    return any(_is_frozen_once(lookup(record).snapshots_of[tensor]) for tensor in in_optimizers(record))


def _finding_of_loop(record: Record, place: Site, before: Site | None, used: UsedUp, *, value: bool) -> Finding:
    moment = next((row.moment for row in record.moments if before is not None and row.site == before.site), 0)
    fate = "What was to be trained from here on stays frozen." if value else "What was to be frozen is trained."
    again = site_at(record, used.loop)
    return told(
        record,
        RULE,
        place.site,
        (
            f"`{used.name}` gives its elements once, as iterators do: the loop at line {used.loop.lineno} gets none.",
            fate,
            "Make it a list: `list(...)`.",
        ),
        binding=used.name,
        moments=[moment],
        related=(
            ("this walks it", None if before is None else before.site),
            ("this loop never runs", None if again is None else again.site),
        ),
        evidence={"attribute": _FLAG, "value": value},
        fixes=(_as_list(record, place, used),),
    )


def _as_list(record: Record, place: Site, used: UsedUp) -> Fix:
    region = region_in(record, used.source, used.made.value)
    edit = replacement(record, place, region, f"list({ast.unparse(used.made.value)})")
    return Fix(title="Make it a list", safety="safe", edits=(edit,))


def _of_flag(record: Record, site: Site, target: ast.Attribute) -> set[int] | None:
    """What an assignment means to freeze or thaw: a module's parameters, or tensors whose flag is misspelt."""
    owner = ast.unparse(target.value)
    if target.attr == _FLAG:
        return None if owner == "self" else _trainable_of(record, site, owner)
    if not _is_misspelt(target.attr) or _is_read(record, target.attr):
        return None
    rows = bindings_named(record)[owner]
    here = [row for row in rows if row.function == site.function]
    return {row.tensor for row in here or rows}


def _is_read(record: Record, attribute: str, owners: Collection[str] | None = None) -> bool:
    """The program reads an attribute of that name, of anything or of one of these names, or asks for it by its name."""
    for part in (part for tree in trees(record).values() for part in tree.nodes):
        if isinstance(part, ast.Constant) and part.value == attribute:
            return True
        if not isinstance(part, ast.Attribute) or part.attr != attribute or not isinstance(part.ctx, ast.Load):
            continue
        if owners is None or ast.unparse(part.value).rpartition(".")[2] in owners:
            return True
    return False


def _first_in(record: Record, site: Site) -> int:
    """The first moment in the function of a site; 0 where none is known."""
    known = lookup(record).sites
    rows = (row.moment for row in record.moments if row.site is not None and known[row.site].function == site.function)
    return min(rows, default=0)


def _kept_as(record: Record, tensors: set[int], since: int) -> bool | None:
    """The one flag that all of these have from a moment on; None where it differs or changes."""
    found: set[bool] = set()
    for tensor in tensors:
        rows = lookup(record).snapshots_of[tensor]
        before = [row for row in rows if row.moment < since][-1:]
        found |= {row.requires_grad for row in (*before, *(row for row in rows if row.moment >= since))}
    return found.pop() if len(found) == 1 else None


def _finding_of_any(record: Record, site: Site, target: ast.Attribute, value: ast.expr, *, frozen: bool) -> Finding:
    """Of a value that is a variable's, or of a misspelt flag that is set to True."""
    owner, module = ast.unparse(target.value), target.attr == _FLAG
    region, given = region_in(record, site.source, target), ast.unparse(value)
    stays = "stays frozen" if frozen else "requires grad throughout"
    said = f"`{target.attr}` is no attribute that torch knows: setting it does nothing, and `{owner}` {stays}."
    written = f"{owner}.{_FLAG} = {given}"
    edit = replacement(record, site, region, f"{owner}.{_FLAG}")
    if module:
        many = "stay frozen" if frozen else "require grad throughout"
        said = f"`{owner}` is a module: setting `{_FLAG}` on it does nothing, and its parameters {many}."
        written = f"{owner}.requires_grad_({given})"
        edit = replacement(record, site, region_of(site), written)
    return told(
        record,
        RULE,
        site.site,
        (
            said,
            f"What was to be {'trained from here on is not' if frozen else 'frozen is trained all the same'}.",
            f"Write `{written}`.",
        ),
        binding=owner,
        moments=[_first_in(record, site)],
        evidence={"attribute": target.attr, "value": given},
        fixes=(Fix(title="Set the flag", safety="unsafe", edits=(edit,)),),
    )


def _compared(record: Record, site: Site) -> ast.Attribute | None:
    """The flag that a statement compares with False, and does nothing else with, though what it is of requires grad."""
    node = statement(record, site) if site.kind not in ("enter", "grad-read") else None
    value = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(value, ast.Compare) or len(value.ops) != 1 or not isinstance(value.ops[0], ast.Eq | ast.Is):
        return None
    flag = value.left
    if not isinstance(flag, ast.Attribute) or flag.attr != _FLAG or not _is_false(value.comparators[0]):
        return None
    held = [row.tensor for row in bindings_named(record)[ast.unparse(flag.value)] if row.function == site.function]
    rows = [row for tensor in held for row in lookup(record).snapshots_of[tensor]]
    return flag if rows and all(row.requires_grad for row in rows if row.is_leaf) else None


def _finding_of_comparison(record: Record, site: Site, flag: ast.Attribute, moment: int) -> Finding:
    owner = ast.unparse(flag.value)
    edit = replacement(record, site, region_of(site), f"{owner}.{_FLAG} = False")
    return told(
        record,
        RULE,
        site.site,
        (
            f"This statement compares `{owner}.{_FLAG}` with False and drops the answer: it sets nothing.",
            "What was to be frozen is trained all the same.",
            f"Write `{owner}.{_FLAG} = False`.",
        ),
        binding=owner,
        moments=[moment],
        evidence={"attribute": _FLAG, "compared": True},
        fixes=(Fix(title="Assign it", safety="safe", edits=(edit,)),),
    )


def _still_frozen(record: Record, site: Site, owner: str) -> set[int]:
    """The parameters of the module of that name, if each required grad at first, was frozen, and stays so."""
    tensors = _trainable_of(record, site, owner)
    if tensors is None:
        tensors = _below_path(record, site, owner)
    rows = [lookup(record).snapshots_of[tensor] for tensor in tensors or ()]
    return set(tensors or ()) if rows and all(_is_frozen_once(one) for one in rows) else set()


def _is_frozen_once(rows: Sequence[Snapshot]) -> bool:
    flags = [row.requires_grad for row in rows]
    return bool(flags) and flags[0] and not flags[-1] and flags == sorted(flags, reverse=True)


def _below_path(record: Record, site: Site, owner: str) -> set[int] | None:
    """The parameters of the one module whose path inside its model ends the owner's: `self.model.encoder`."""
    tree, last = trees(record).get(site.source), owner.rpartition(".")[2]
    found = [row for row in record.modules if row.fqn and f".{owner}".endswith(f".{row.fqn}")]
    if tree is None or len(found) != 1 or any(
        isinstance(part, ast.Attribute) and part.attr == _FLAG and isinstance(part.ctx, ast.Load)
        and ast.unparse(part.value).rpartition(".")[2] == last
        for part in tree.nodes
    ):  # fmt: skip
        return None
    if any(one.user_code and _has_property(record, one.cls) for one in record.modules):
        return None
    return parameters_of_module(record, found[0])


def _finding_of_frozen(
    record: Record, site: Site, target: ast.Attribute, owner: str, moment: int, tensors: set[int]
) -> Finding:
    edit = replacement(record, site, region_of(site), f"{owner}.requires_grad_(True)")
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{owner}` is a module: setting `{_FLAG}` on it does nothing, and its parameters stay frozen.",
            "What was to be trained from here on is not.",
            f"Write `{owner}.requires_grad_(True)`.",
        ),
        binding=owner,
        moments=[moment],
        region=region_in(record, site.source, target),
        evidence={"attribute": _FLAG, "frozen": sorted(tensors)[:16]},
        fixes=(Fix(title="Unfreeze its parameters", safety="unsafe", edits=(edit,)),),
    )


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _is_misspelt(name: str) -> bool:
    return name != _FLAG and difflib.SequenceMatcher(None, name, _FLAG).ratio() >= ALIKE


def _trainable_of(record: Record, site: Site, owner: str) -> set[int] | None:
    """The parameters of the module of that name; None where there is none, or where its class has such a property."""
    module = module_called(record, owner)
    if module is not None:
        return None if module.user_code and _has_property(record, module.cls) else parameters_of_module(record, module)
    looped = _looped_over(record, site, owner)
    if looped is not None:
        return None if any(one.user_code and _has_property(record, one.cls) for one in record.modules) else looped
    named = _named_here(record, site, owner)
    if named:
        return None if any(one.user_code and _has_property(record, one.cls) for one in named) else _held(record, named)
    handed = modules_handed(record, site, owner)
    if handed:
        if _reads_flag_of(record, site, owner) or any(
            one.user_code and _has_property(record, one.cls) for one in record.modules
        ):
            return None
        return {tensor for one in handed for tensor in parameters_of_module(record, one)}
    call = _call_of(record, site, owner)
    below = [] if call is None else [modules_by_number(record).get(one.module) for one in inside(record, call)]
    if any(one is not None and one.user_code and _has_property(record, one.cls) for one in below):
        return None
    found = {row.tensor for one in below if one is not None for row in one.parameters if row.tensor is not None}
    return found or None


def _reads_flag(tree: Tree, owner: str) -> bool:
    """The program reads the attribute: it is a flag of its own."""
    return any(
        isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) and ast.unparse(part) == f"{owner}.{_FLAG}"
        for part in tree.nodes
    )


def _reads_flag_of(record: Record, site: Site, owner: str) -> bool:
    """The program reads the flag of what is called so here or where it was handed in."""
    given = (one.text for one in all_handed_in(record, site, owner.partition(".")[0]))
    return _is_read(record, _FLAG, {one.rpartition(".")[2] for one in (owner, *given)})


def _named_here(record: Record, site: Site, owner: str) -> list[Module]:
    """The modules that a statement of the same function gave that name."""
    known, tree = modules_by_number(record), trees(record).get(site.source)
    if tree is None or _reads_flag(tree, owner):
        return []
    return [
        known[module]
        for module, rows in module_names(record).items()
        if module in known
        and any(row.name == owner and lookup(record).sites[row.site].function == site.function for row in rows)
    ]


def _held(record: Record, named: list[Module]) -> set[int] | None:
    """The parameters of those modules and of what their calls ran."""
    return {tensor for one in named for tensor in held_by(record, one.module)} or None


def _looped_over(record: Record, site: Site, owner: str) -> set[int] | None:
    """The parameters of the module that a loop runs over whose own name is the owner; None where it is none of that.

    `for block in net[:2]`, `for m in net.modules()`: which of the modules inside were meant does not matter where all
    parameters still require grad. The name must never have held a tensor, and its flag must not be read.
    """
    node, tree = statement(record, site), trees(record).get(site.source)
    if node is None or tree is None or any(row.function == site.function for row in bindings_named(record)[owner]):
        return None
    if _reads_flag(tree, owner):
        return None
    for above in tree.ancestors(node):
        if isinstance(above, ast.For) and owner in target_names(above.target):
            paths = (part for part in ast.walk(above.iter) if isinstance(part, ast.Name | ast.Attribute))
            found = (module_called(record, ast.unparse(part)) for part in paths)
            module = next((one for one in found if one is not None), None)
            return None if module is None else parameters_of_module(record, module) or None
    return None


def _call_of(record: Record, site: Site, owner: str) -> ModuleCall | None:
    """A call of `self.trunk(x)` in a method of the class whose method sets the flag of `self.trunk`."""
    cls = site.function.rpartition(".")[0]
    if not owner.startswith("self.") or not cls:
        return None
    index, called = lookup(record), calls_by_number(record)
    for row in record.operations:
        made = None if row.tensor is None or row.function != owner else index.node_of.get(row.tensor)
        number = None if made is None else index.nodes[made.node].module_call
        here = index.sites[row.statement].function.rpartition(".")[0] == cls
        call = called.get(number) if number is not None and here else None
        if call is not None and call.site == row.statement:
            return outermost_call(record, call)
    return None


def _has_property(record: Record, cls: str) -> bool:
    """A class of that name in the user's files defines the attribute."""
    for tree in trees(record).values():
        for node in tree.nodes:
            if isinstance(node, ast.ClassDef) and node.name == cls.rsplit(".", 1)[-1]:
                return any(isinstance(part, ast.FunctionDef) and part.name == _FLAG for part in node.body)
    return False


def _still_requires(record: Record, tensors: set[int]) -> bool:
    """Each of them requires grad to the end."""
    states = [lookup(record).snapshots_of[tensor] for tensor in tensors]
    return bool(states) and all(rows and rows[-1].requires_grad for rows in states)


def _finding(record: Record, site: Site, target: ast.Attribute, owner: str, moment: int, *, module: bool) -> Finding:
    region = region_in(record, site.source, target)
    if module:
        said = f"`{owner}` is a module: setting `{_FLAG}` on it does nothing, and its parameters still require grad."
        edits = (replacement(record, site, region_of(site), f"{owner}.requires_grad_(False)"),)
        fix = Fix(title="Freeze its parameters", safety="safe", edits=edits)
    else:
        said = f"`{target.attr}` is no attribute that torch knows: `{owner}` still requires grad."
        edits = (replacement(record, site, region, f"{owner}.{_FLAG}"),)
        fix = Fix(title=f"Write `{_FLAG}`", safety="safe", edits=edits)
    return told(
        record,
        RULE,
        site.site,
        (said, "What was to be frozen is trained all the same.", f"Write `{_remedy(owner, module=module)}`."),
        binding=owner,
        moments=[moment],
        evidence={"attribute": target.attr},
        fixes=(fix,),
    )


def _remedy(owner: str, *, module: bool) -> str:
    return f"{owner}.requires_grad_(False)" if module else f"{owner}.{_FLAG} = False"
