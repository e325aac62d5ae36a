"""BP104 input-without-requires-grad: the gradient of an input is read that was never asked for.

What it finds:
    `.grad` of a leaf is read and used, the leaf went into a computation that a backward call walked, and it never
    required grad. The finding stands at the read.

Why it matters:
    What is read is None; saliency maps and sensitivities come out empty, or the next operation raises.

What PyTorch does:
    A tensor that does not require grad takes no part in a graph, so no backward call leads to it. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    image = torch.ones(3)
    score = (weight * image).sum()
    score.backward()
    saliency = image.grad  # <- here

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    image = torch.ones(3, requires_grad=True)
    score = (weight * image).sum()
    score.backward()
    saliency = image.grad

Near miss: the program asks whether it is there
    import torch

    weight = torch.ones(3, requires_grad=True)
    image = torch.ones(3)
    (weight * image).sum().backward()
    if image.grad is not None:
        print(image.grad)

Near miss: a list of leaves that require grad or not
    import torch

    weight = torch.ones(3, requires_grad=True)
    image = torch.ones(3)
    (weight * image).sum().backward()
    found = [t.grad for t in (weight, image) if t.requires_grad]

Blind spots:
    A read inside a library is not seen.

Source:
    torch.Tensor.requires_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_use import is_guarding, is_only_tested
from backprobe.rules.analysis.graph.cuts import derived_from
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.autograd_errors import level_at
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Level, Rule

if TYPE_CHECKING:
    from backprobe.record import GradRead, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="input-without-requires-grad",
    code="BP104",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("grad-read", "snapshot", "backward", "parents"),
)


LEAST: Final = 2
"""Reads behind a test that find None: once may be the first turn."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per read."""
    for read in record.grad_reads:
        is_tested = is_only_tested(record, read)
        if not read.was_none or (is_tested and not (_is_always_none(record, read) and is_guarding(record, read))):
            continue
        state = state_at(record, read.tensor, read.moment)
        row = lookup(record).tensors[read.tensor]
        plain = row.dtype.startswith(("float", "bfloat", "complex")) and row.special in (None, "complex")
        if state is None or not state.is_leaf or state.requires_grad or not plain or _was_required(record, read):
            continue
        if _went_into(record, read):
            yield _finding(record, read, level="note" if is_tested else None)


def _is_always_none(record: Record, read: GradRead) -> bool:
    """The place of a read finds nothing else, several times."""
    reads = [other for other in record.grad_reads if other.site == read.site]
    return len(reads) >= LEAST and all(other.was_none for other in reads)


def _was_required(record: Record, read: GradRead) -> bool:
    """It required grad at some time before the read: frozen since, or a copy took its place."""
    return any(state.requires_grad for state in lookup(record).snapshots_of[read.tensor] if state.moment <= read.moment)


def _went_into(record: Record, read: GradRead) -> bool:
    """Something that requires grad was computed from it, and a backward call came before the read."""
    if not any(call.moment_after is not None and call.moment_after <= read.moment for call in record.backward_calls):
        return False
    return any(
        state.requires_grad
        for tensor in derived_from(record, read.tensor) - {read.tensor}
        for state in lookup(record).snapshots_of[tensor]
    )


def _finding(record: Record, read: GradRead, *, level: Level | None) -> Finding:
    read_as = site_of(record, read.site).reads
    name = read_as[0] if read_as else called(record, read.tensor)
    return told(
        record,
        RULE,
        read.site,
        (
            f"`{name}` does not require grad, so `{name}.grad` is None whatever backward does.",
            "It went into the computation as a constant.",
            f"Call `{name}.requires_grad_()` before it is used.",
        ),
        binding=name,
        moments=[read.moment],
        related=((f"`{name}` is made here", lookup(record).tensors[read.tensor].site),),
        evidence={"tensor": read.tensor, "requires_grad": False, "is_leaf": True, "grad": None},
        tensors=[read.tensor],
        level=level or level_at(record, read.site),
    )
