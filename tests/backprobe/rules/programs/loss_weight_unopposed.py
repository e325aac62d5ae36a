"""BP878 loss-weight-unopposed."""

TASKS = """
import torch
from torch import nn
import torch.nn.functional as F

class Weighting(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_sigma = nn.Parameter(torch.zeros(tasks))

    def forward(self, losses):
        {total}

net, weighting = nn.Linear(4, 2), Weighting(2)
optimizer = torch.optim.Adam([*net.parameters(), *weighting.parameters()], lr=1e-2)
for x in torch.randn(5, 16, 4):
    out = net(x)
    losses = [F.mse_loss(out[:, 0], x.sum(1)), F.l1_loss(out[:, 1], x[:, 0])]
    loss = weighting(losses)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

DUAL = """
import torch
from torch import nn
import torch.nn.functional as F

policy, multiplier = nn.Linear(4, 1), nn.Parameter(torch.tensor(0.5))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
dual = torch.optim.SGD([multiplier], lr=0.05)  # <- BP878
for x in torch.randn(5, 16, 4):
    out = policy(x)
    cost = out.square().mean()
    {loss}
    optimizer.zero_grad()
    dual.zero_grad()
    loss.backward()
    optimizer.step()
    {step}
"""

PROGRAMS = {
    "weights of tasks in one leaf, the losses stacked": TASKS.format(
        total="return (torch.exp(-2 * self.log_sigma) * torch.stack(losses)).sum()  # <- BP878"
    ),
    "what is divided by a squared scale": TASKS.format(
        total="""total = 0.0
        for sigma, loss in zip(self.log_sigma, losses):
            total = total + loss / (2 * sigma.exp().square())  # <- BP878
        return total"""
    ),
    "right: each weight is paid for": TASKS.format(
        total="return (torch.exp(-2 * self.log_sigma) * torch.stack(losses) + self.log_sigma).sum()"
    ),
    "right: weights that sum to one": TASKS.format(
        total="return (torch.softmax(self.log_sigma, 0) * torch.stack(losses)).sum()"
    ),
    "a multiplier that descends with an optimizer of its own": DUAL.format(
        loss="loss = -out.mean() + F.softplus(multiplier) * (cost - 0.01)", step="dual.step()"
    ),
    "right: the gradient of the multiplier is turned round": DUAL.replace("  # <- BP878", "").format(
        loss="loss = -out.mean() + F.softplus(multiplier) * (cost - 0.01)",
        step="multiplier.grad.neg_()\n    dual.step()",
    ),
    "right: the multiplier has its own loss, with a minus": DUAL.replace("  # <- BP878", "").format(
        loss="""penalty = F.softplus(multiplier)
    loss = -out.mean() + penalty.detach() * (cost - 0.01) - penalty * (cost.detach() - 0.01)""",
        step="dual.step()",
    ),
    "right: a gain behind a layer": """
import torch
from torch import nn

net, gain = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
optimizer = torch.optim.SGD([*net.parameters(), gain], lr=0.05)
for x in torch.randn(5, 1, 4):
    optimizer.zero_grad()
    (gain.exp() * net(x).squeeze()).backward()
    optimizer.step()
""",
    "right: a scale that is put back in bounds by hand": """
import torch
from torch import nn

net, s = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
optimizer = torch.optim.SGD([*net.parameters(), s], lr=0.05)
for x in torch.randn(5, 16, 4):
    error = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    (torch.exp(-s) * error).backward()
    optimizer.step()
    with torch.no_grad():
        s.clamp_(-1, 1)
""",
}
