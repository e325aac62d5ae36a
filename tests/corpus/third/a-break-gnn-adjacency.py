# /// case
# title = "Learned adjacency matrix is detached before message passing"
# category = "graph-break"
# kind = "graph-break-detach"
# kinds_also_ok = ["parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["adj", "theta", "phi", "detach"]
# difficulty = "medium"
# symptom = "the two projections that build the adjacency never change"
# symptom_check = "all(p.grad is None for c in model.layers for m in (c.theta, c.phi) for p in m.parameters())"
# cause = "adj is detached, so theta and phi lie outside the graph"
# fix = "remove the detach"
# evidence = [{ url = "https://github.com/queenie88/A-GCN/issues/4" }]
# ///
"""Adaptive graph convolution: the edge weights are computed from node features."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class AdaptiveGraphConv(nn.Module):
    def __init__(self, fan_in, fan_out, key=8):
        super().__init__()
        self.theta = nn.Linear(fan_in, key, bias=False)
        self.phi = nn.Linear(fan_in, key, bias=False)
        self.value = nn.Linear(fan_in, fan_out)
        self.skip = nn.Linear(fan_in, fan_out)
        self.key = key

    def adjacency(self, x):
        score = self.theta(x) @ self.phi(x).transpose(1, 2) / math.sqrt(self.key)
        return F.softmax(score, dim=-1)

    def forward(self, x):
        adj = self.adjacency(x).detach()  #- here
#+         adj = self.adjacency(x)
        return F.relu(self.skip(x) + adj @ self.value(x))  #! also


class SkeletonClassifier(nn.Module):
    def __init__(self, coords=3, width=24, classes=4, depth=2):
        super().__init__()
        dims = [coords] + [width] * depth
        self.layers = nn.ModuleList(AdaptiveGraphConv(a, b) for a, b in zip(dims, dims[1:]))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(dim=1))


def skeletons(n, joints=10):
    y = torch.randint(0, 4, (n,))
    angle = y.float()[:, None] * 0.8 + torch.linspace(0, 1, joints)
    x = torch.stack([angle.cos(), angle.sin(), torch.zeros_like(angle)], dim=-1)
    return x + 0.2 * torch.randn_like(x), y


def run(steps=25):
    torch.manual_seed(0)
    model = SkeletonClassifier()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        x, y = skeletons(32)
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    return model, loss.item()


model, final = run()
print(f"{final:.3f}")
