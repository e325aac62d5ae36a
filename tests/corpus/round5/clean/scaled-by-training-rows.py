import torch
from torch import nn

torch.manual_seed(50)
raw = torch.randn(150, 4) * torch.tensor([1.0, 10.0, 0.1, 5.0]) + 3
target = raw[:, 0] + 0.1 * raw[:, 1]
order = torch.randperm(150)
train, held = order[:110], order[110:]
mean, std = raw[train].mean(0), raw[train].std(0)
x = (raw - mean) / std
y = (target - target[train].mean()) / target[train].std()
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
fixed = torch.randn(len(held), 4, generator=torch.Generator().manual_seed(0))
for epoch in range(6):
    for idx in train[torch.randperm(len(train))].split(22):
        noisy = x[idx] + 0.05 * torch.randn(len(idx), 4)
        loss = (model(noisy).squeeze(1) - y[idx]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, loss.item(), (model(x[held] + 0.05 * fixed).squeeze(1) - y[held]).square().mean().item())
