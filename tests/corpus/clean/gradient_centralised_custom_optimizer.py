import math

import torch
from torch import nn
from torch.optim import Optimizer

torch.manual_seed(0)


class AdamGC(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad
                if g.dim() > 1:
                    g = g - g.mean(dim=tuple(range(1, g.dim())), keepdim=True)
                st = self.state[p]
                if not st:
                    st["t"], st["m"], st["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                st["t"] += 1
                st["m"].mul_(b1).add_(g, alpha=1 - b1)
                st["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
                lr = group["lr"] * math.sqrt(1 - b2 ** st["t"]) / (1 - b1 ** st["t"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.addcdiv_(st["m"], st["v"].sqrt().add_(group["eps"]), value=-lr)
        return loss


net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 3))
opt = AdamGC(net.parameters(), lr=5e-3, weight_decay=1e-2)
X = torch.randn(60, 8)
Y = X[:, :3].argmax(1)
for epoch in range(4):
    for i in torch.randperm(60).split(20):
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
