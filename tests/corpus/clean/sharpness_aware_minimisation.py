import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        self.base = base(self.param_groups, **kw)

    @torch.no_grad()
    def climb(self):
        norms = [p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]
        scale = 0.05 / (torch.stack(norms).norm() + 1e-12)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    move = p.grad * scale
                    p.add_(move)
                    self.state[p]["move"] = move
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if "move" in self.state[p]:
                    p.sub_(self.state[p]["move"])
        self.base.step()
        self.zero_grad()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
for _ in range(8):
    x = torch.randn(32, 5)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.climb()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print(loss.item())
