import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
X = torch.randn(64, 8)
Y = X[:, :4].argmax(1)


def compute_kl(p, q):
    lp, lq = F.log_softmax(p, -1), F.log_softmax(q, -1)
    a = F.kl_div(lp, lq, log_target=True, reduction="batchmean")
    b = F.kl_div(lq, lp, log_target=True, reduction="batchmean")
    return (a + b) / 2


for epoch in range(4):
    for idx in torch.randperm(64).split(16):
        a, b = model(X[idx]), model(X[idx])
        ce = 0.5 * (F.cross_entropy(a, Y[idx]) + F.cross_entropy(b, Y[idx]))
        loss = ce + 1.0 * compute_kl(a, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, ce.item(), (model(X).argmax(1) == Y).float().mean().item())
    model.train()
