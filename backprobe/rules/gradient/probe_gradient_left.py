"""BP215 probe-gradient-left: a helper walks back to look at a gradient, and what it leaves is stepped on.

What it finds:
    A function of the program makes a loss, walks it back and reads a `.grad`: that of an input, as an attack or a
    saliency map does, or that of parameters, once, before training. The call also filled the parameters. Nobody clears
    them before another function's backward call adds the gradient of training, and the optimizer steps on the sum. The
    finding stands at the clear that runs just before the helper, one line too early; else at the call of the helper,
    and at its backward call where the source does not tell that one.

Why it matters:
    Each step, or the first one, goes partly along the gradient of a loss that was only to be looked at.

What PyTorch does:
    `backward()` fills every leaf that its graph reaches, not only the one that is read afterwards. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


    def attacked(x, y):
        x = x.clone().requires_grad_(True)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return (x + 0.1 * x.grad.sign()).detach()


    for x in torch.randn(4, 8, 4):
        y = (x[:, 0] > 0).long()
        optimizer.zero_grad()  # <- here
        loss = nn.functional.cross_entropy(model(attacked(x, y)), y)
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


    def attacked(x, y):
        x = x.clone().requires_grad_(True)
        loss = nn.functional.cross_entropy(model(x), y)
        (gradient,) = torch.autograd.grad(loss, x)
        return (x + 0.1 * gradient.sign()).detach()


    for x in torch.randn(4, 8, 4):
        y = (x[:, 0] > 0).long()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(attacked(x, y)), y)
        loss.backward()
        optimizer.step()

Near miss: what the helper left is cleared
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


    def saliency(x):
        x = x.clone().requires_grad_(True)
        model(x).sum().backward()
        return x.grad.abs()


    for x in torch.randn(4, 8, 4):
        seen = saliency(x)
        optimizer.zero_grad()
        model(x * seen).pow(2).mean().backward()
        optimizer.step()

Near miss: one loss of two, each in a function of its own, and the first one's norm is logged
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


    def first(x):
        model(x).pow(2).mean().backward()
        return model.weight.grad.norm().item()


    def second(x):
        (model(x) - 1).abs().mean().backward()


    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        norm = first(x)
        second(x)
        optimizer.step()

Blind spots:
    A probe that is written into the loop itself: there a sum of both gradients may be meant.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.calling_statements import statement_beside
from backprobe.rules.analysis.gradients.grad_spans import Span, cleared_above, grad_spans
from backprobe.rules.analysis.graph.backward_order import call_begun_after
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import capital, optimizer_name, together
from backprobe.rules.analysis.training.trained_parameters import trained
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import GradRead, LeafGrad, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="probe-gradient-left",
    code="BP215",
    since="0.2",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("grad-life", "optimizer", "grad-read", "backward"),
    refines=("missing-zero-grad",),
)

LEAST: Final = 2
"""Times that training has to walk back beside one probe before training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """What a helper's call left in a leaf, what it read of it or of its input, and what was added before the step."""

    span: Span
    left: LeafGrad
    added: LeafGrad
    read: GradRead


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call of a helper."""
    by_site: defaultdict[int, list[_Probe]] = defaultdict(list)
    for spans in grad_spans(record).values():
        for span in spans:
            probe = _probe(record, span)
            if probe is not None and probe.left.site is not None:
                by_site[probe.left.site].append(probe)
    for site, probes in by_site.items():
        yield _finding(record, site, probes)


def _probe(record: Record, span: Span) -> _Probe | None:
    """The first arrival of a span that is stepped on, if it is a probe's and another function's comes behind it."""
    if len(span.arrivals) < 2 or not span.updates or span.updates[0].site is None:
        return None
    arrivals = [row for row in span.arrivals if row.moment < span.updates[0].moment]
    step = _function(record, span.updates[0].site)
    for left in arrivals:
        own = _function(record, left.site)
        others = [row for row in arrivals if row.site is not None and _function(record, row.site) != own]
        if own in (None, "<module>", step) or not others:
            continue
        read = _read(record, left, own)
        if read is not None and (_is_own(record, read, own) or _is_once(record, left, others[0])):
            return _Probe(span=span, left=left, added=others[0], read=read)
    return None


def _function(record: Record, site: int | None) -> str | None:
    return None if site is None else lookup(record).sites[site].function


def _read(record: Record, left: LeafGrad, function: str | None) -> GradRead | None:
    """What the helper read behind its call: the `.grad` of something else first."""
    following = call_begun_after(record, left.moment)
    rows = _reads(record).get(function or "", [])
    first = bisect_left(rows, left.moment, key=lambda row: row.moment)
    found: GradRead | None = None
    for row in rows[first:]:
        if following is not None and row.moment > following.moment_before:
            break
        if _is_own(record, row, function):
            return row
        found = found or row
    return found


def _is_own(record: Record, read: GradRead, function: str | None) -> bool:
    """The gradient of an input, or of what the helper makes and updates itself, as an attack's perturbation."""
    return read.tensor not in trained(record) or _function(record, lookup(record).tensors[read.tensor].site) == function


@table
def _reads(record: Record) -> dict[str, list[GradRead]]:
    """The reads of a `.grad` that was there, by function, in order; a test of whether it is None is none."""
    found: defaultdict[str, list[GradRead]] = defaultdict(list)
    for row in sorted(record.grad_reads, key=lambda row: row.moment):
        if not row.was_none and row.use != "tested":
            found[_function(record, row.site) or ""].append(row)
    return found


@table
def _calls_at(record: Record) -> Counter[int | None]:
    """How many backward calls each site made."""
    return Counter(call.site for call in record.backward_calls)


def _is_once(record: Record, left: LeafGrad, added: LeafGrad) -> bool:
    """The helper walked back once, in the leaf's first gradient, and training does so again and again."""
    counts = _calls_at(record)
    return counts[left.site] == 1 and counts[added.site] >= LEAST and record.backward_calls[0].site == left.site


def _finding(record: Record, site: int, probes: list[_Probe]) -> Finding:
    first = probes[0]
    tensors = sorted({one.span.tensor for one in probes})
    held = first.span.updates[0].optimizer
    step = "The step" if held is None else f"`{optimizer_name(record, held)}.step()`"
    function = _function(record, site) or ""
    called = None if first.added.site is None else statement_beside(record, site, first.left.moment, first.added.site)
    clear = None if called is None else cleared_above(record, first.span, called)
    at, said = site if called is None else called.site, "This call"
    if clear is not None:
        at, said = clear, f"`{function.rpartition('.')[2]}` runs after this clear: its backward call"
    return told(
        record,
        RULE,
        at,
        (
            f"{said} is to look at a gradient, and fills {together(record, tensors)} as well.",
            f"{capital(step)} uses it together with that of training: nothing clears it in between.",
            "Ask for the one gradient: `torch.autograd.grad(loss, x)`; or clear the others when the helper is done.",
        ),
        binding=function,
        moments=sorted({one.left.moment for one in probes}),
        related=(
            ("the helper is called here", None if clear is None or called is None else called.site),
            ("the helper walks back here", None if called is None else site),
            ("the helper reads a gradient here", first.read.site),
            ("training adds its own gradient here", first.added.site),
            ("the sum is stepped on here", first.span.updates[0].site),
        ),
        evidence={
            "tensors": tensors[:16],
            "function": function,
            "assumed": "the helper's loss is not to be trained on",
        },
        tensors=tensors,
        calls=sorted({one.left.call for one in probes if one.left.call is not None}),
        optimizers=() if held is None else (held,),
    )
