"""BP341 frozen-before-root: the program froze all that it trains, and the next backward call has nothing to walk.

What it finds:
    A backward call raised because its root has no history, and all parameters that it reached before, or that the
    optimizers hold, had their `requires_grad` switched off by the program. The finding stands at the last statement
    that did; related is the call that raised.

Why it matters:
    The call says that the loss does not require grad; what made it so is often a helper: an export, an attack, a
    `freeze()` that was meant for a copy or for one phase only.

What PyTorch does:
    `requires_grad = False` on a parameter holds until it is switched back, in whatever function it was set. A name is
    no copy: `frozen = model.eval()` is the model. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        loss = net(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        net.requires_grad_(False)  # <- here
        print(net.weight.norm())

Use instead:
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        loss = net(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            print(net.weight.norm())

Near miss: switched back before the next step
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        net.requires_grad_(False)
        x = torch.randn(8, 4, requires_grad=True)
        (slope,) = torch.autograd.grad(net(x).sum(), x)
        net.requires_grad_(True)
        loss = net((x + 0.1 * slope).detach()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Where only some of what is trained was frozen, another rule says why the root has no history.

Source:
    torch.nn.Module.requires_grad_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.calls.calling_statements import statement_calling
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.roots import RaisedCall, raised_calls
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import method_called, statement_at
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.value_origins import Switch, switched_off
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="frozen-before-root",
    code="BP341",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "backward", "snapshot", "optimizer"),
    explains=("root-without-history", "graph-break-detach", "graph-break-no-grad", "frozen-with-stale-gradient"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call that raised over what was frozen."""
    for one in raised_calls(record, "no-history"):
        leaves = _reached_before(record, one) or frozenset(in_optimizers(record))
        switches = [switched_off(record, leaf, one.call.moment_before) for leaf in sorted(leaves)]
        known = [switch for switch in switches if switch is not None]
        if known and all(not _is_trainable(record, leaf, one.call.moment_before) for leaf in leaves):
            yield _finding(record, one, known)


def _reached_before(record: Record, one: RaisedCall) -> frozenset[int]:
    """The leaves that the last call of the same statement reached."""
    calls = [row.call for row in record.backward_calls if row.site == one.call.site and row.call < one.call.call]
    return reaches(record)[calls[-1]].leaves if calls else frozenset()


def _is_trainable(record: Record, leaf: int, moment: int) -> bool:
    state = state_at(record, leaf, moment)
    return state is None or state.requires_grad


def _where_decided(record: Record, switch: Switch) -> int:
    """The statement that froze; that which called the function it stands in, if the flag is an argument of it."""
    node = statement_at(record, switch.site)
    if node is None or not any(_is_given(part) for part in ast.walk(node)):
        return switch.site
    caller = statement_calling(record, switch.site, switch.moment)
    return switch.site if caller is None else caller.site


def _is_given(part: ast.AST) -> bool:
    """`p.requires_grad_(flag)`, `p.requires_grad = flag`: a name tells which way."""
    if isinstance(part, ast.Call) and method_called(part) == "requires_grad_":
        return any(isinstance(one, ast.Name) for one in (*part.args, *(row.value for row in part.keywords)))
    return isinstance(part, ast.Assign) and isinstance(part.value, ast.Name)


def _finding(record: Record, one: RaisedCall, switches: list[Switch]) -> Finding:
    last = max(switches, key=lambda switch: switch.moment)
    frozen = sorted(switch.tensor for switch in switches)
    name = next((row.name for row in one.call.roots if row.name), None) or "the root"
    made = lookup(record).tensors[frozen[0]].site
    place = _where_decided(record, last)
    return told(
        record,
        RULE,
        place,
        (
            f"This statement freezes {together(record, frozen)}, and `{name}` has no history when it is walked back.",
            "All that the call trained before is frozen by then: there is nothing to walk.",
            "Switch `requires_grad` back on before training goes on, or freeze a copy: `copy.deepcopy(...)`.",
        ),
        binding=name,
        moments=[last.moment],
        related=(
            ("raised here", one.site.site),
            ("the flag is set here", last.site if place != last.site else None),
            ("what is frozen is made here", made),
        ),
        evidence={"frozen": frozen[:16], "call": one.call.call},
        tensors=frozen,
        calls=[one.call.call],
        level=level_of(record, one.raised),
    )
