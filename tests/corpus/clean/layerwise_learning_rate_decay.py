import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, depth=3, d=12):
        super().__init__()
        self.stem = nn.Linear(6, d)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU()) for _ in range(depth))
        self.head = nn.Linear(d, 3)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def groups(model, base_lr, decay, wd=0.05):
    n = len(model.layers) + 1
    out = {}
    for name, p in model.named_parameters():
        if name.startswith("stem"):
            depth = 0
        elif name.startswith("layers"):
            depth = int(name.split(".")[1]) + 1
        else:
            depth = n
        key = (depth, p.ndim > 1)
        g = out.setdefault(key, {"params": [], "lr": base_lr * decay ** (n - depth), "weight_decay": wd if p.ndim > 1 else 0.0})
        g["params"].append(p)
    return list(out.values())


model = Net()
opt = torch.optim.AdamW(groups(model, 3e-3, 0.7))
warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=3)
cos = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=9)
sched = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cos], milestones=[3])
X = torch.randn(48, 6)
Y = X[:, :3].argmax(1)
for step in range(12):
    i = torch.randint(0, 48, (16,))
    loss = F.cross_entropy(model(X[i]), Y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
print(loss.item(), [f"{g['lr']:.2e}" for g in opt.param_groups])
