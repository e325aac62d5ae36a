import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
K = 4
net = nn.Sequential(nn.Linear(10, 32), nn.Mish(), nn.Linear(32, K))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
X = torch.randn(64, 10)
Y = X[:, :K].argmax(1)


def soft_ce(logits, target):
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


for epoch in range(4):
    for idx in torch.randperm(64).split(16):
        x, y = X[idx], F.one_hot(Y[idx], K).float()
        y = y * 0.9 + 0.1 / K
        lam = torch.distributions.Beta(0.3, 0.3).sample()
        x, y = lam * x + (1 - lam) * x.flip(0), lam * y + (1 - lam) * y.flip(0)
        loss = soft_ce(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    print(epoch, loss.item(), (net(X).argmax(-1) == Y).float().mean().item())
