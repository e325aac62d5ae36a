"""BP953 coverage-broken: training passes over a parameter.

What it finds:
    Each trained parameter should be in one optimizer that steps, get gradients, and change. The finding names the
    first place where that is not so and no rule explains it: a parameter group that is frozen, a parameter that no
    backward call reaches or whose gradient is always zero, the hook that makes it so, the statement that replaces a
    loss made of it, one with gradients that no optimizer holds, one that steps leave as it is, an optimizer that never
    steps, or a schedule of such an optimizer.

Why it matters:
    Nothing raises, and a part of the model keeps its initial values.

What PyTorch does:
    An optimizer skips a parameter whose `.grad` is None, and never looks at one that it does not hold. A backward call
    reaches what the loss was computed from, and stops where a value is not tracked. Seen in torch 2.13.

Example:
    import torch
    from torch import nn


    def scale(gradient):
        return 0 * gradient


    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    for parameter in model[0].parameters():
        parameter.register_hook(scale)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn


    def scale(gradient):
        return 0.1 * gradient


    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    for parameter in model[0].parameters():
        parameter.register_hook(scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()

Near miss: a frozen encoder that no optimizer holds
    import torch
    from torch import nn

    torch.manual_seed(0)
    encoder, head = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        head(encoder(torch.randn(8, 4))).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Parameters that the program updates itself, without an optimizer, are not judged. Of a hook that is a lambda the
    record does not show what it returned: it is not named, and no operation is.

Source:
    torch.optim in PyTorch's documentation. Two steps: one may be the last. A change under 1e-4 of the parameter's norm
    is not told from none in float32 statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.record.rows.series import steps_looked_at
from backprobe.rules.analysis.invariants.checks import Coverage
from backprobe.rules.analysis.invariants.coverage_breaches import coverage_breaches
from backprobe.rules.analysis.invariants.coverage_facts import Kind, steps
from backprobe.rules.analysis.invariants.replaced_values import replaced_values
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.trained_parameters import parameters
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="coverage-broken",
    code="BP953",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="manual",
    needs=("backward", "optimizer"),
)
EXPLAINED_BY = ("BP1", "BP2", "BP3", "BP4", "BP5", "BP6", "BP7", "BP8")
"""Families of rules whose findings explain a breach."""

_WORDS: Final[dict[Kind, tuple[str, str]]] = {
    "frozen": (
        "`{name}` does not require grad while its optimizer steps: the whole parameter group is never trained.",
        "Set `requires_grad_(True)` before training, or leave the group out of the optimizer.",
    ),
    "never-called": (
        "The optimizer holds `{name}`, and the module that owns it is never called: it never gets a gradient.",
        "Call the module in `forward`, or leave its parameters out of the optimizer.",
    ),
    "no-gradient": (
        "The optimizer holds `{name}`, and no backward call reaches it: its way to the loss ends here.",
        "Keep the values tracked from `{name}` to the loss.",
    ),
    "overwritten": (
        (
            "`{variable}` is assigned {times} times in a step, and only its last value reaches the loss: "
            "`{name}` gets no gradient."
        ),
        "Add the values up, as `{variable} = {variable} + ...` does, or call `backward()` for each.",
    ),
    "not-held": (
        "`{name}` gets gradients in several steps, and no optimizer that steps holds it.",
        "Pass it to the optimizer, or set `requires_grad_(False)`.",
    ),
    "not-changed": (
        "{steps} steps leave `{name}` exactly as it was, though its gradient is not zero.",
        (
            "Check the learning rate that the optimizer has after this statement. An update that is smaller than the "
            "parameter's rounding changes nothing either."
        ),
    ),
    "not-written": (
        "Each step leaves `{name}` exactly as it was, though its gradient is not zero and its learning rate above 0.",
        (
            "Either the updates are smaller than the parameter's rounding, or `step` does not write into the parameter "
            "itself, as `p.sub_(...)` does."
        ),
    ),
    "zero-gradient": (
        "The gradient of `{name}` is zero in every element at every step: nothing passes through this operation.",
        "Check the values that the operation gets, and the initial values of the parameters behind it.",
    ),
    "zeroed-by-hook": (
        "The gradient of `{name}` is zero in every element at every step: it becomes zero at this hook.",
        "Return nothing from the hook, or the gradient that it should hand on.",
    ),
    "never-stepped": (
        "This backward call brings gradients to `{name}`, and the optimizer that holds it never steps.",
        "Call `step()` of that optimizer.",
    ),
    "idle-optimizer": (
        "This schedule belongs to an optimizer that never steps; another one steps `{name}`.",
        "Build the schedule for the optimizer that steps.",
    ),
    "rows-equal": (
        "The rows of `{name}` are equal here and stay equal: all its units compute and learn the same.",
        "Draw the initial values at random.",
    ),
    "nothing-trained": (
        "No step of the optimizer ever finds a gradient: nothing is trained.",
        "Check which parameters it holds, and whether they require grad.",
    ),
    "wrapper-passed-by": (
        "The loss goes past the data-parallel wrapper, which is never called: no gradient is averaged over replicas.",
        "Call the wrapper, not the module inside.",
    ),
}


def check(record: Record) -> Iterator[Finding]:
    """Yield a finding for each kind of leaf that training passes over."""
    names = parameters(record)
    for breach in coverage_breaches(record):
        first = breach.tensors[0] if breach.tensors else None
        name = "" if first is None else names.get(first) or _first_name(record, first)
        replaced = replaced_values(record).get(breach.site)
        facts = {
            "name": name,
            "variable": "" if replaced is None else replaced.name,
            "times": 0 if replaced is None else replaced.times,
            "steps": len(breach.moments),
        }
        seen, advice = (line.format(**facts) for line in _WORDS[breach.kind])
        counted = f"{len(breach.tensors)} parameters are concerned." if len(breach.tensors) > 1 else ""
        yield told(
            record,
            RULE,
            breach.site,
            [line for line in (seen, counted, advice) if line],
            binding=name,
            moments=breach.moments or [event.moment for event in steps(record)],
            tensors=breach.tensors,
            optimizers=[] if breach.optimizer is None else [breach.optimizer],
            evidence={"breach": breach.kind, "parameters": len(breach.tensors)},
        )


def _first_name(record: Record, tensor: int) -> str:
    bound = lookup(record).bindings_of[tensor]
    return bound[0].name if bound else f"tensor {tensor}"


def measure_coverage(record: Record) -> Coverage:
    """Return how many optimizer steps were recorded in full."""
    made = len(steps(record))
    looked_at, total = steps_looked_at(record.steps) if record.steps else (made, made)
    why = "no optimizer stepped" if not made else ""
    return Coverage(
        checked=min(looked_at, total) if made else 0, total=max(total, made) if made else 0, unit="steps", why=why
    )
