# /// case
# title = "Custom normalisation keeps attached batch statistics in its running averages"
# category = "retention-leak"
# kind = "graph-carried-across-steps"
# kinds_also_ok = ["graph-retained", "graph-retained-list", "missing-detach"]
# severity = "warning"
# names = ["running_mean", "running_scale", "mean", "scale"]
# difficulty = "hard"
# symptom = "the running statistics carry a graph that grows with each step; no message"
# symptom_check = "net[1].running_mean.requires_grad"
# cause = "the batch mean is part of the graph; the moving average is formed without detach or no_grad"
# fix = "update the running statistics under no_grad"
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/20275" }, { url = "https://github.com/bayesiains/nflows/pull/11" }, { url = "https://github.com/facebookresearch/synsin/pull/20" }]
# ///
"""Regression with a mean-absolute-deviation normalisation layer."""
import torch
import torch.nn as nn


class MADNorm(nn.Module):
    def __init__(self, width, momentum=0.1, eps=1e-4):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_scale", torch.ones(width))
        self.momentum, self.eps = momentum, eps

    def forward(self, x):
        if self.training:
            mean = x.mean(dim=0)
            scale = (x - mean).abs().mean(dim=0) + self.eps
            m = self.momentum
            self.running_mean = (1 - m) * self.running_mean + m * mean  #- here
            self.running_scale = (1 - m) * self.running_scale + m * scale  #- here
#+             with torch.no_grad():
#+                 self.running_mean = (1 - m) * self.running_mean + m * mean
#+                 self.running_scale = (1 - m) * self.running_scale + m * scale
        else:
            mean, scale = self.running_mean, self.running_scale
        return (x - mean) / scale * self.gain + self.shift


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 32), MADNorm(32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(30):
    x = torch.randn(64, 6) * 3 + 1
    y = (x[:, :1] * x[:, 1:2]).tanh()
    loss = nn.functional.huber_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()

net.eval()
with torch.no_grad():
    x = torch.randn(128, 6) * 3 + 1
    error = (net(x) - (x[:, :1] * x[:, 1:2]).tanh()).abs().mean().item()
print(f"train {loss.item():.3f} eval {error:.3f}")
