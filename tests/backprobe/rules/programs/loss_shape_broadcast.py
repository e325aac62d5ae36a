"""BP808 loss-shape-broadcast."""

LOSS = """
import torch
from torch import nn
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.randn(3, 8, 3):
    pred, target = net(x), x.sum(1)
    {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "a quantile's loss": LOSS.format(
        loss="""err = target - pred  # <- BP808
    loss = torch.maximum(0.9 * err, -0.1 * err).mean()"""
    ),
    "a quantile's loss of a row": LOSS.format(
        loss="""err = target - pred.squeeze(1)
    loss = torch.maximum(0.9 * err, -0.1 * err).mean()"""
    ),
    "the logarithm of a hyperbolic cosine": LOSS.format(
        loss="""err = pred - target  # <- BP808
    loss = torch.log(torch.cosh(err)).sum()"""
    ),
    "rows that are picked from a table, neither side with a name": LOSS.format(
        loss="rows = torch.randperm(8); loss = ((net(x[rows]) - x.sum(1)[rows]) ** 2).mean()  # <- BP808"
    ),
    "a batch in a dict, the row first": LOSS.format(
        loss="""batch = {"x": x, "y": target}
    loss = (batch["y"] - net(batch["x"])).abs().mean()  # <- BP808"""
    ),
    "a table's rows as a row of their own, all pairs": LOSS.format(
        loss="rows = torch.randperm(8); loss = ((net(x[rows]) - x.sum(1)[rows][None, :]) ** 2).mean()"
    ),
    "predictions against a transposed column": LOSS.format(
        loss="rows = torch.randperm(8); loss = ((net(x[rows]) - x.sum(1, keepdim=True)[rows].T) ** 2).mean()"
    ),
    "predictions are compared with each other": LOSS.format(
        loss="loss = pred.pow(2).mean() - 0.1 * (pred - pred.squeeze(1)).abs().mean()"
    ),
    "a kernel between predictions and points": LOSS.format(loss="loss = torch.exp(-(pred - target).pow(2)).mean()"),
    "a log-probability as a column, an advantage as a row": LOSS.format(
        loss="""logp = torch.distributions.Normal(pred, 1.0).log_prob(torch.zeros(8, 1))
    loss = -(logp * target).mean()  # <- BP808"""
    ),
    "a clipped ratio and an advantage as a row": LOSS.format(
        loss="""ratio = (pred - pred.detach()).exp()
    loss = -torch.min(ratio * target, ratio.clamp(0.8, 1.2) * target).mean()  # <- BP808"""
    ),
    "a weight for each sample as a column": LOSS.format(
        loss="""per = nn.functional.binary_cross_entropy_with_logits(pred, torch.ones(8, 1), reduction="none")
    loss = (per * target.sigmoid()[:, None]).mean()"""
    ),
    "a matrix of products that is compared with a matrix": LOSS.format(
        loss="""given = x @ x.T
    loss = (pred * target - given).pow(2).mean()"""
    ),
    "a parameter times a row": """
import torch
u, v = torch.randn(5, 1, requires_grad=True), torch.randn(5)
(u * v).sum().backward()
""",
    "the two meet in a function that is handed both": """
import torch
from torch import nn

def huber(prediction, y):
    error = y - prediction
    return torch.where(error.abs() < 1, error**2 / 2, error.abs() - 0.5).mean()

def predict(net, x):
    scores = net(x)  # <- BP808
    return scores

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.randn(3, 8, 3):
    loss = huber(predict(net, x), x.sum(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "the two meet in a method of a trainer": """
import torch
from torch import nn
import torch.nn.functional as F

class Fit:
    def __init__(self, net):
        self.net, self.optimizer = net, torch.optim.SGD(net.parameters(), lr=0.01)

    def loss(self, output, target):
        return F.smooth_l1_loss(output, target)

    def step(self, x):
        output = self.net(x)  # <- BP808
        loss = self.loss(output, x.sum(1))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

fit = Fit(nn.Linear(3, 1))
for x in torch.randn(3, 8, 3):
    fit.step(x)
""",
    "a function that makes one of the two itself": """
import torch
from torch import nn

def error_of(net, x, y):
    prediction = net(x)
    return (prediction - y).abs().mean()  # <- BP808

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.randn(3, 8, 3):
    loss = error_of(net, x, x.sum(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a function that is handed two rows": """
import torch
from torch import nn

def huber(prediction, y):
    error = y - prediction
    return torch.where(error.abs() < 1, error**2 / 2, error.abs() - 0.5).mean()

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.randn(3, 8, 3):
    loss = huber(net(x).squeeze(1), x.sum(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "what came out of one is used in another": LOSS.format(
        loss="""logp = -(x * 0.1).sum(1)
    advantage = target - pred  # <- BP808
    loss = (net(x).squeeze(1) * advantage.detach()).mean() + advantage.square().mean() + 0 * logp.mean()"""
    ),
    "a loss by hand takes a term of its own away": """
import torch
from torch import nn

def saturating(prediction, target):
    gap = prediction - target
    return (torch.log1p(gap.square()) - 0.1).mean()

net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 8, 3):
    guess = net(x)  # <- BP808
    optimizer.zero_grad()
    saturating(guess, x.sum(1)).backward()
    optimizer.step()
""",
    "an equation adds a source without the column's dimension": """
import torch
from torch import nn

def residual(net, x, source):
    value = net(x)
    (slope,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    return slope + source  # <- BP808

net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = torch.rand(6, 1, requires_grad=True)
    force = torch.sin(x.detach()).squeeze(1)
    optimizer.zero_grad()
    residual(net, x, force).square().mean().backward()
    optimizer.step()
""",
    "sums of all pairs are fitted to a table of all pairs": """
import torch
from torch import nn

net = nn.Linear(3, 1)
costs, known = torch.rand(6, 6), torch.rand(6)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 6, 3):
    potential = net(x)
    total = potential + known
    optimizer.zero_grad()
    (total - costs).square().mean().backward()
    optimizer.step()
""",
    "gaps of all pairs are fitted to a table of all pairs": """
import torch
from torch import nn

net = nn.Linear(3, 1)
steps, known = torch.rand(6, 6), torch.rand(6)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 6, 3):
    height = net(x)
    gaps = height - known
    optimizer.zero_grad()
    (gaps - steps).square().mean().backward()
    optimizer.step()
""",
}
