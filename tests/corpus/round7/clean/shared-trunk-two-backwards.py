import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(117)
trunk = nn.Sequential(nn.Linear(9, 24), nn.ReLU())
depth, normal = nn.Linear(24, 1), nn.Linear(24, 3)
parameters = [p for m in (trunk, depth, normal) for p in m.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3)
shared = list(trunk.parameters())


def flat(grads):
    return torch.cat([g.flatten() for g in grads])


x = torch.randn(64, 9)
targets = {"depth": x[:, :1].abs(), "normal": F.normalize(x[:, 1:4], dim=1)}
for step in range(15):
    h = trunk(x)
    losses = {
        "depth": F.l1_loss(depth(h), targets["depth"]),
        "normal": (1 - F.cosine_similarity(normal(h), targets["normal"])).mean(),
    }
    norms = {name: flat(torch.autograd.grad(loss, shared, retain_graph=True)).norm() for name, loss in losses.items()}
    mean = sum(norms.values()) / len(norms)
    weights = {name: (mean / (norm + 1e-8)).item() for name, norm in norms.items()}
    optimizer.zero_grad()
    losses["depth"].mul(weights["depth"]).backward(retain_graph=True)
    losses["normal"].mul(weights["normal"]).backward()
    optimizer.step()
print({k: v.item() for k, v in losses.items()}, weights)
