import torch
from torch import nn

torch.manual_seed(0)


def off_diagonal(x):
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


class BarlowTwins(nn.Module):
    def __init__(self, lambd=0.005):
        super().__init__()
        self.lambd = lambd
        self.backbone = nn.Sequential(nn.Linear(12, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(inplace=True))
        self.projector = nn.Linear(32, 16, bias=False)
        self.bn = nn.BatchNorm1d(16, affine=False)

    def forward(self, y1, y2):
        z1, z2 = self.projector(self.backbone(y1)), self.projector(self.backbone(y2))
        c = self.bn(z1).T @ self.bn(z2)
        c.div_(y1.shape[0])
        on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
        off_diag = off_diagonal(c).pow_(2).sum()
        return on_diag + self.lambd * off_diag


model = BarlowTwins()
weights = [p for p in model.parameters() if p.ndim > 1]
biases = [p for p in model.parameters() if p.ndim == 1]
opt = torch.optim.SGD([{"params": weights, "weight_decay": 1e-4}, {"params": biases, "weight_decay": 0.0}], lr=0.01, momentum=0.9)
warmup, total = 3, 10
for step in range(total):
    lr = 0.05 * (step + 1) / warmup if step < warmup else 0.05 * (1 - (step - warmup) / total)
    for g in opt.param_groups:
        g["lr"] = lr
    x = torch.randn(32, 12)
    loss = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, lr, loss.item())
