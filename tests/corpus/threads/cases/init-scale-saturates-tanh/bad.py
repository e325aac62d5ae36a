import torch
from torch import nn

torch.manual_seed(16)
model = nn.Sequential(
    nn.Linear(12, 32), nn.Tanh(),
    nn.Linear(32, 32), nn.Tanh(),
    nn.Linear(32, 1),
)
for module in model:
    if isinstance(module, nn.Linear) and module.out_features > 1:
        nn.init.uniform_(module.weight, -60, 60)

opt = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(100, 12)
y = x[:, :3].sum(1, keepdim=True)
for i in range(20):
    opt.zero_grad()
    pred = model(x)
    err = (pred - y).pow(2).mean()
    err.backward()
    opt.step()
print(err.item())
