import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    """Sharpness aware minimization around any base optimizer."""

    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def ascend(self):
        grads = [p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]
        total = torch.stack(grads).norm() + 1e-12
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["backup"] = p.detach().clone()
                p.add_(p.grad * (group["rho"] / total))
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(self.state[p].pop("backup"))
        self.base.step()
        self.zero_grad()

    def step(self, closure):
        closure = torch.enable_grad()(closure)
        first = closure()
        self.ascend()
        closure()
        self.descend()
        return first


def moons(n, noise=0.15):
    t = torch.rand(n) * torch.pi
    upper = torch.rand(n) > 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x, y], 1) + noise * torch.randn(n, 2), upper.float()


torch.manual_seed(30)
torch.set_num_threads(1)
x, y = moons(300)
net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = SAM(net.parameters(), torch.optim.SGD, rho=0.05, lr=0.1, momentum=0.9)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(20):
    for idx in torch.randperm(len(x)).split(50):
        def closure():
            loss = loss_fn(net(x[idx]).squeeze(1), y[idx])
            loss.backward()
            return loss

        loss = optimizer.step(closure)
    if epoch % 5 == 0:
        with torch.no_grad():
            acc = ((net(x).squeeze(1) > 0) == y.bool()).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} acc {acc:.3f}")
