"""BP803 nll-without-log: `nll_loss` is given probabilities or logits instead of log-probabilities.

What it finds:
    What `nll_loss` gets was computed by a softmax, or holds values above 0 in every call, which no logarithm of a
    probability does. The finding stands at the call of the loss.

Why it matters:
    The loss becomes minus the mean probability, or minus the mean logit: it is negative, its gradients vanish where the
    model is most wrong, or it falls without end.

What PyTorch does:
    `nll_loss` picks the entry of the target class and changes its sign. It takes no logarithm and checks nothing. Seen
    in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    criterion = nn.NLLLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        probabilities = model(x).softmax(dim=1)
        loss = criterion(probabilities, x.argmax(1) % 3)  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    criterion = nn.NLLLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        log_probabilities = model(x).log_softmax(dim=1)
        loss = criterion(log_probabilities, x.argmax(1) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the logarithm is taken by hand
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    x = torch.randn(8, 4)
    mixture = 0.5 * model(x).softmax(dim=1) + 0.5 * model(-x).softmax(dim=1)
    nn.functional.nll_loss((mixture + 1e-6).log(), x.argmax(1) % 3).backward()

Near miss: a small constant inside the logarithm lifts it above 0
    import torch
    from torch import nn

    scores = torch.tensor([[50.0, 0.0], [0.0, 50.0]], requires_grad=True)
    log_probabilities = torch.log(scores.softmax(dim=1) + 1e-4)
    nn.functional.nll_loss(log_probabilities, torch.tensor([0, 1])).backward()

Blind spots:
    Logits that happen to be all below 0 are not seen.

Source:
    torch.nn.NLLLoss in PyTorch's documentation; the threshold is that of `nonlog.py`; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.losses.log_inputs import NotLog, not_logarithms
from backprobe.rules.analysis.losses.loss_calls import callee
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="nll-without-log",
    code="BP803",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "call", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per call of the loss in the program."""
    for site, found in not_logarithms(record, "nll_loss").items():
        yield _finding(record, site, found)


def _finding(record: Record, site: int, found: list[NotLog]) -> Finding:
    first = found[0]
    name = callee(record, first.call.call)
    effect = (
        "Without a logarithm the gradient vanishes where the model is most wrong."
        if first.place is not None
        else "Without a softmax and its logarithm it can fall without end."
    )
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` wants log-probabilities, and `{first.text}` {first.why}.",
            effect,
            "Use `log_softmax` before it, or give the logits to `cross_entropy`.",
        ),
        binding=first.text,
        moments=[one.call.moment for one in found],
        region=first.region,
        related=(() if first.place is None else (("the probabilities are computed here", first.place.site),)),
        evidence={"softmax": first.place is not None, "max": first.greatest, "calls": len(found)},
        tensors=(first.call.given,),
    )
