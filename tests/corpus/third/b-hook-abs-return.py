# /// case
# title = "Logging hook returns a value and so changes the gradient"
# category = "hooks"
# kind = "hook-changes-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["record", "register_hook", "magnitude"]
# difficulty = "hard"
# symptom = "Training gets worse instead of better and finally diverges (every gradient is positive); silent."
# symptom_check = "not (losses[-1] < losses[0])"
# cause = "The tensor hook that logs the mean magnitude returns the magnitude; a non-None return value replaces the gradient by its absolute value."
# fix = "Return None from the hook."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/7040" }, { url = "https://github.com/TransformerLensOrg/TransformerLens/issues/1160" }]
# ///
"""Gradient statistics for a regression network."""
from collections import defaultdict

import torch
from torch import nn


class GradientStats:
    def __init__(self):
        self.rows = defaultdict(list)
        self.handles = []

    def attach(self, model):
        for name, p in model.named_parameters():
            self.handles.append(p.register_hook(self.make_recorder(name)))  #! here

    def make_recorder(self, name):
        def record(grad):  #! here
            magnitude = grad.detach().abs()
            self.rows[name].append(magnitude.mean().item())
            return magnitude  #- here

        return record  #! also

    def detach(self):
        while self.handles:
            self.handles.pop().remove()


torch.manual_seed(0)
x = torch.rand(256, 2) * 2 - 1
y = torch.stack([x[:, 0] * x[:, 1], x[:, 0] - x[:, 1]], 1)
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
stats = GradientStats()
stats.attach(net)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
losses = []
for it in range(60):
    batch = torch.randint(0, 256, (64,))
    loss = nn.functional.mse_loss(net(x[batch]), y[batch])
    opt.zero_grad()
    loss.backward()
    opt.step()  #! also
    losses.append(loss.item())
stats.detach()
print(losses[0], losses[-1], {k: round(v[-1], 5) for k, v in stats.rows.items()})
