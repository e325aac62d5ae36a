import torch
from torch import nn

torch.manual_seed(19)


def load_batch(size=12):
    batch = torch.randn(size, 4)
    missing = torch.zeros(size, dtype=torch.bool)
    missing[::5] = True
    batch[missing, 2] = 0.0
    return batch, batch[:, :2].sum(1), ~missing


net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(4):
    batch, target, valid = load_batch()
    out = net(batch).squeeze(1)
    err = torch.where(valid, (out - target) ** 2, torch.zeros(()))
    loss = err.sum() / valid.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
