import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(100, 6)
Y = X @ torch.tensor([[1.0], [0.5], [0.0], [-1.0], [2.0], [0.0]])
X[torch.rand_like(X) < 0.15] = float("nan")
Y[torch.rand_like(Y) < 0.1] = float("nan")
observed = ~X.isnan()
mean = torch.nanmean(X, 0)
filled = torch.where(observed, X, mean)
features = torch.cat([filled, observed.float()], 1)
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    for idx in torch.randperm(100).split(25):
        y = Y[idx]
        known = ~y.isnan()
        pred = model(features[idx])
        err = (pred[known] - y[known]).pow(2)
        loss = err.sum() / known.sum().clamp(min=1)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
