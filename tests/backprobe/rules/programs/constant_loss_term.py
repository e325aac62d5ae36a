"""BP810 constant-loss-term."""

_LOOP = """
import torch
from torch import nn

net = nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 9, 6):
    {term}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def _loop(*lines: str) -> str:
    return _LOOP.format(term="\n    ".join(lines))


PROGRAMS = {
    "added in place, under no_grad": _loop(
        "loss = net(x).square().mean()",
        "with torch.no_grad():",
        "    size = net.weight.norm()  # <- BP810",
        "loss += 0.1 * size",
    ),
    "added once only": _loop(
        "loss = net(x).square().mean()",
        "if 'first' not in globals():",
        "    first = net.weight.detach().norm()",
        "    loss = loss + first",
    ),
    "taken away": _loop("size = net.weight.detach().norm()", "loss = net(x).square().mean()", "loss -= size"),
    "a count of what is in a parameter": _loop(
        "fit = net(x).square().mean()", "count = (net.weight.detach() > 0).sum()", "loss = fit + count"
    ),
    "each row has its own": _loop(
        "fit = net(x).square()",
        "size = net.weight.detach().norm()  # <- BP810",
        "both = fit + size",
        "loss = both.mean()",
    ),
    "a term of outputs is told by its cut": _loop(
        "out = net(x)",
        "fit = out.square().mean()",
        "level = out.detach().abs().mean()  # <- BP601",
        "loss = fit + level",
    ),
    "nothing walks the sum": _loop(
        "loss = net(x).square().mean()", "size = net.weight.detach().norm()", "shown = loss + size"
    ),
    "a distillation of the teacher with itself, scaled": """
import torch
from torch import nn
torch.manual_seed(0)

teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
kl = nn.KLDivLoss(reduction="batchmean", log_target=True)
for x in torch.randn(3, 8, 4):
    with torch.no_grad():
        logits = teacher(x)
    soft = logits.log_softmax(-1)
    given = (logits / 1.0).log_softmax(-1)  # <- BP810
    distill = kl(given, soft) * 4
    loss = distill + nn.functional.cross_entropy(student(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
