"""BP804 kl-div-without-log: `kl_div` is given probabilities where it wants their logarithms.

What it finds:
    The first argument of `kl_div` was computed by a softmax, or holds values above 0 in every call, which no
    logarithm of a probability does. The finding stands at a softmax in the function of the loss, else at the loss.

Why it matters:
    The result is no divergence: it may be negative, and its gradient in each probability is a constant, which does
    not depend on how far the two distributions are apart.

What PyTorch does:
    `kl_div(input, target)` is the sum of target * (log(target) - input): `input` holds log-probabilities, `target`
    probabilities, unless `log_target` is set. Nothing is checked. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    student = nn.Linear(4, 3)
    for x in torch.randn(3, 8, 4):
        student.zero_grad()
        guess = student(x).softmax(1)  # <- here
        nn.functional.kl_div(guess, x[:, :3].softmax(1), reduction="batchmean").backward()

Use instead:
    import torch
    from torch import nn

    student = nn.Linear(4, 3)
    for x in torch.randn(3, 8, 4):
        student.zero_grad()
        guess = student(x).log_softmax(1)
        nn.functional.kl_div(guess, x[:, :3].softmax(1), reduction="batchmean").backward()

Near miss: the logarithm is taken by hand
    import torch
    from torch import nn

    student = nn.Linear(4, 3)
    x = torch.randn(8, 4)
    guess = student(x).softmax(1)
    nn.functional.kl_div((guess + 1e-6).log(), x[:, :3].softmax(1), reduction="batchmean").backward()

Near miss: the module, with logarithms on both sides
    import torch
    from torch import nn

    student, criterion = nn.Linear(4, 3), nn.KLDivLoss(reduction="batchmean", log_target=True)
    x = torch.randn(8, 4)
    criterion(student(x).log_softmax(1), x[:, :3].log_softmax(1)).backward()

Blind spots:
    A target that holds logarithms without `log_target`, or the two arguments swapped, is not seen.

Source:
    torch.nn.KLDivLoss in PyTorch's documentation; the threshold is that of `log_inputs.py`; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.losses.log_inputs import NotLog, not_logarithms
from backprobe.rules.analysis.losses.loss_calls import callee
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="kl-div-without-log",
    code="BP804",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "call", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per call of the loss in the program."""
    for site, found in not_logarithms(record, "kl_div").items():
        yield _finding(record, site, found)


def _finding(record: Record, site: int, found: list[NotLog]) -> Finding:
    first = found[0]
    name, place = callee(record, first.call.call), first.place
    is_beside = place is not None and site_of(record, place.site).function == site_of(record, site).function
    at, region = (place.site, place.region) if place is not None and is_beside else (site, first.region)
    return told(
        record,
        RULE,
        at,
        (
            f"`{name}` wants log-probabilities first, and `{first.text}` {first.why}.",
            "What comes out is no divergence, and its gradient does not fall as the two become alike.",
            "Use `log_softmax` for the first argument; the second one stays a softmax.",
        ),
        binding=first.text,
        moments=[one.call.moment for one in found],
        region=region,
        related=(
            ("the loss takes them for logarithms here", None if at == site else site),
            ("the probabilities are computed here", None if place is None or place.site == at else place.site),
        ),
        evidence={"softmax": first.place is not None, "max": first.greatest, "calls": len(found)},
        tensors=(first.call.given,),
    )
