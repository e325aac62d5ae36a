import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
X = torch.randn(60, 6)
Y = (X[:, 0] + X[:, 1] > 0).long() + (X[:, 2] > 1).long()


def supcon(z, y, tau=0.1):
    z = F.normalize(z, dim=1)
    sim = z @ z.t() / tau
    sim = sim - sim.max(1, keepdim=True).values.detach()
    self_mask = torch.eye(len(z), dtype=torch.bool)
    pos = (y[:, None] == y[None]) & ~self_mask
    log_prob = sim - sim.masked_fill(self_mask, float("-inf")).logsumexp(1, keepdim=True)
    return -(log_prob * pos).sum(1).div(pos.sum(1).clamp(min=1)).mean()


encoder = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16))
projection = nn.Linear(16, 8)
opt = torch.optim.Adam([{"params": encoder.parameters()}, {"params": projection.parameters(), "lr": 3e-3}], lr=1e-3)
for epoch in range(6):
    for idx in torch.randperm(60).split(20):
        loss = supcon(projection(encoder(X[idx])), Y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("pretrain", epoch, loss.item())

for p in encoder.parameters():
    p.requires_grad = False
encoder.eval()
clf = nn.Linear(16, 3)
opt = torch.optim.Adam(clf.parameters(), lr=1e-2)
for epoch in range(6):
    loss = F.cross_entropy(clf(encoder(X)), Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("linear", loss.item(), (clf(encoder(X)).argmax(1) == Y).float().mean().item())
