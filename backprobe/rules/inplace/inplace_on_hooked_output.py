"""BP410 inplace-on-hooked-output: the output of a module with a full backward hook is changed in place.

What it finds:
    A write into what a hooked module returned was refused. The finding stands at the `inplace=True` that writes, if the
    program has it, else at the statement; related are the registration of the hook and the call that raised.

Why it matters:
    The program stops as soon as the hook is registered, though neither the model nor the hook changed.

What PyTorch does:
    `register_full_backward_hook` passes the inputs and outputs of the module through `BackwardHookFunction`, whose
    outputs are views. A write into one would take the hook out of the graph: torch raises `RuntimeError: Output 0 of
    BackwardHookFunction is a view and is being modified inplace`. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 1))  # <- here
    net[0].register_full_backward_hook(lambda module, given, taken: None)
    net(torch.ones(3, 4)).sum().backward()

Use instead:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    net[0].register_full_backward_hook(lambda module, given, taken: None)
    net(torch.ones(3, 4)).sum().backward()

Near miss: no hook
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 1))
    net(torch.ones(3, 4)).sum().backward()

Blind spots:
    An in-place module inside a library is told at the user's call of that library.

Source:
    torch.nn.Module.register_full_backward_hook in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import keyword, with_keyword
from backprobe.rules.analysis.source.syntax import region_in, site_at, statement, trees
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.refused_writes import Refused, refused
from backprobe.rules.framework.finding import Finding, Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Site

RULE = Rule(
    name="inplace-on-hooked-output",
    code="BP410",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "module", "hook"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch:
    """An `inplace=True` of the program, and the statement that it stands in."""

    site: Site
    call: ast.Call


def check(record: Record) -> Iterator[Finding]:
    """One finding per refused write into the output of a hooked module."""
    for one in refused(record, "hooked-module-view-changed"):
        yield _finding(record, one)


def _finding(record: Record, one: Refused) -> Finding:
    switch = _switch(record, one)
    hook = next((row for row in record.hooks if row.kind in ("module-backward", "module-backward-pre")), None)
    module = None if hook is None or hook.module is None else _called(record, hook.module)
    whose = "a module with a backward hook" if module is None else f"`{module}`, which has a backward hook"
    site = one.site if switch is None else switch.site
    region: Region | None = None if switch is None else region_in(record, site.source, switch.call)
    how = "This statement" if switch is None else f"`{ast.unparse(switch.call)}`"
    fixes: list[Fix] = []
    if switch is not None:
        edit = with_keyword(record, site, switch.call, "inplace", "False")
        fixes = [Fix(title="Make a new tensor", safety="unsafe", edits=(edit,))]
    return told(
        record,
        RULE,
        site.site,
        (
            f"{how} changes in place what comes from {whose}.",
            "Torch refuses it: the change would take the hook out of the graph.",
            "Use `inplace=False` there; or hook the tensor itself with `register_hook`.",
        ),
        binding=module or one.name,
        moments=[one.raised.moment or 0],
        region=region,
        related=(
            ("the hook was registered here", None if hook is None else hook.site),
            ("raised here", None if site.site == one.site.site else one.site.site),
        ),
        evidence={"module": module, "hook": None if hook is None else hook.callable},
        fixes=fixes,
        level=level_of(record, one.raised),
    )


def _called(record: Record, module: int) -> str | None:
    """`net.0` for a module below `net`; the name of a root."""
    row = next((one for one in record.modules if one.module == module), None)
    if row is None:
        return None
    chains = [call.chain for call in record.module_calls if call.module == module]
    root = chains[0].split("#")[0] if chains else row.binding
    return root if not row.fqn else f"{root}.{row.fqn}" if root else row.fqn


def _switch(record: Record, one: Refused) -> _Switch | None:
    """The `inplace=True` behind the write: in the statement itself, else of the class of the module called last."""
    node = statement(record, one.site)
    own = [] if node is None else [part for part in ast.walk(node) if _is_switched(part)]
    if own:
        call = own[0]
        return _Switch(site=one.site, call=call) if isinstance(call, ast.Call) else None
    if one.written is not None or not record.module_calls:
        return None
    last = next(row for row in record.modules if row.module == record.module_calls[-1].module)
    found: list[tuple[bool, int, _Switch]] = []
    for source, tree in trees(record).items():
        for part in tree.nodes:
            if not isinstance(part, ast.Call) or not _is_switched(part) or _class(part) != last.cls:
                continue
            around = next((up for up in tree.ancestors(part) if isinstance(up, ast.stmt)), None)
            site = None if around is None else site_at(record, around)
            if site is not None and site.source == source:
                found.append((site.site != last.site, part.lineno, _Switch(site=site, call=part)))
    return min(found, key=lambda row: row[:2])[2] if found else None


def _is_switched(part: ast.AST) -> bool:
    given = keyword(part, "inplace") if isinstance(part, ast.Call) else None
    return given is not None and isinstance(given.value, ast.Constant) and given.value.value is True


def _class(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
