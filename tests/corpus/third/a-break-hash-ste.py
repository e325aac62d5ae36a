# /// case
# title = "Straight-through binarisation with the two sides swapped"
# category = "graph-break"
# kind = "straight-through-wrong"
# kinds_also_ok = ["graph-break-non-differentiable", "graph-break-detach"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["binarise", "sign", "h"]
# difficulty = "medium"
# symptom = "all gradients of the hashing network are exactly zero, the loss does not fall"
# symptom_check = "all(float(p.grad.abs().sum()) == 0.0 for p in net.parameters())"
# cause = "the continuous value is the detached side and sign() the differentiable one; the derivative of sign is zero (and the output is not binary either)"
# fix = "keep h differentiable and detach the difference sign(h) - h"
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/68941" }, { url = "https://github.com/pytorch/pytorch/issues/48574" }]
# ///
"""Deep supervised hashing: 12-bit codes from a similarity loss."""
import torch
from torch import nn


def binarise(h):
    b = h.sign()
    return b + (h - b).detach()  #- here
#+     return h + (b - h).detach()


class HashNet(nn.Module):
    def __init__(self, features=20, bits=12):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 48), nn.ReLU())
        self.project = nn.Linear(48, bits)

    def forward(self, x):
        return binarise(torch.tanh(self.project(self.body(x))))  #! also


def pair_loss(code, label):
    same = (label[:, None] == label[None, :]).float() * 2 - 1
    sim = code @ code.t() / code.size(1)
    off = ~torch.eye(len(label), dtype=torch.bool)
    return (sim - same)[off].pow(2).mean()


torch.manual_seed(7)
centres = torch.randn(4, 20) * 2
net = HashNet()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
losses = []
for step in range(30):
    y = torch.randint(0, 4, (32,))
    x = centres[y] + torch.randn(32, 20)
    opt.zero_grad()
    loss = pair_loss(net(x), y)
    loss.backward()
    opt.step()
    losses.append(loss.item())
print(f"{losses[0]:.3f} -> {losses[-1]:.3f}")
