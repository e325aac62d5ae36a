"""BP870 classes-scrambled-by-view."""

_MAPS = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(4)
net = nn.Conv2d(3, 4, 3, padding=1)
opt = torch.optim.Adam(net.parameters(), 1e-2)
criterion = nn.CrossEntropyLoss()
for _ in range(3):
    x, mask = torch.randn(2, 3, 6, 8), torch.randint(0, 4, (2, 6, 8))
    out = net(x)
    {lines}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def _maps(*lines: str) -> str:
    return _MAPS.format(lines="\n    ".join(lines))


PROGRAMS = {
    "in the loss's own expression": _maps("loss = criterion(out.reshape(-1, 4), mask.flatten())  # <- BP870"),
    "by a copy, and targets that have a name": _maps(
        "rows = out.contiguous().view(-1, out.size(1))  # <- BP870",
        "wanted = mask.view(-1)",
        "loss = F.nll_loss(F.log_softmax(rows, 1), wanted)",
    ).replace("F.nll_loss(F.log_softmax(rows, 1), wanted)", "F.cross_entropy(rows, wanted)"),
    "a signal with one dimension of places": """
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Conv1d(3, 5, 3, padding=1)
opt = torch.optim.Adam(net.parameters(), 1e-2)

def loss_of(scores, labels):
    count = scores.shape[1]
    return nn.functional.cross_entropy(
        scores.reshape(-1, count),  # <- BP870
        labels.reshape(-1),
    )

for _ in range(3):
    loss = loss_of(net(torch.randn(2, 3, 12)), torch.randint(0, 5, (2, 12)))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the classes are moved": _maps("loss = criterion(out.permute(0, 2, 3, 1).reshape(-1, 4), mask.flatten())"),
    "right: places are flattened, classes stay": _maps("loss = criterion(out.flatten(2), mask.flatten(1))"),
    "right: as it is": _maps("loss = criterion(out, mask)"),
    "right: boxes by anchor, four numbers each": """
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Linear(6, 8)
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(3):
    scores, labels = net(torch.randn(3, 4, 6)), torch.randint(0, 4, (3, 4, 2))
    loss = nn.functional.cross_entropy(scores.view(-1, 4), labels.view(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: as many words as classes": """
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Linear(6, 5)
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(3, 5, 6)).view(-1, 5), torch.randint(0, 5, (3, 5)).view(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
