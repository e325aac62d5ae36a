import torch
from torch import nn

torch.manual_seed(48)
model = nn.Sequential(nn.Linear(1, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.rand(80, 1) * 2 - 1
y = torch.sin(3 * x)
for epoch in range(15):
    model.train()
    for idx in torch.randperm(80).split(20):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def monte_carlo(model, x, n=20):
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    with torch.no_grad():
        draws = torch.stack([model(x) for _ in range(n)])
    model.eval()
    return draws.mean(0), draws.std(0)


mean, spread = monte_carlo(model, torch.tensor([[0.0], [3.0]]))
print(loss.item(), spread.flatten())
