# /// case
# title = "The persistent Langevin chains are never detached, so their graph grows with each step"
# category = "retention"
# kind = "persistent-chains-keep-graph"
# kinds_also_ok = ["missing-detach", "growing-graph", "memory-leak", "graph-kept-across-iterations"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["chains", "x", "run", "Langevin"]
# symptom = "the graph of the chains grows with each iteration, and so do memory and the time of backward"
# symptom_check = "chains.grad_fn is not None"
# cause = "Each state of the chain is computed from the one before with a graph, and the chains persist between iterations."
# fix = "x.detach().requires_grad_(True) in the loop, and return x.detach()"
# ///
import math

import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def moons(count):
    angle = math.pi * torch.rand(count)
    upper = torch.stack([angle.cos(), angle.sin()], 1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
    return torch.where(torch.rand(count, 1) < 0.5, upper, lower) + 0.05 * torch.randn(count, 2)


class Langevin:
    def __init__(self, energy, steps=8, size=0.05, noise=0.02):
        self.energy, self.steps, self.size, self.noise = energy, steps, size, noise

    def run(self, x):
        for _ in range(self.steps):
            x = x.requires_grad_(True)  #- here
#+             x = x.detach().requires_grad_(True)
            force, = torch.autograd.grad(self.energy(x).sum(), x)
            x = x - self.size * force.clamp(-1, 1) + self.noise * torch.randn_like(x)  #! here
        return x  #- here
#+         return x.detach()


torch.manual_seed(17)
energy = Energy()
sampler = Langevin(energy)
optimizer = torch.optim.Adam(energy.parameters(), lr=2e-3)
chains = 2 * torch.rand(64, 2) - 0.5
for step in range(16):
    real = moons(64)
    chains = sampler.run(chains)  #! here
    positive, negative = energy(real), energy(chains)  #! also
    loss = positive.mean() - negative.mean() + 0.1 * (positive.square() + negative.square()).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if step % 4 == 3:
        print(f"step {step}: gap {(positive.mean() - negative.mean()).item():+.4f}")
