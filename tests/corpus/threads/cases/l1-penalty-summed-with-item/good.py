import torch
from torch import nn

torch.manual_seed(0)


def l1_norm(model):
    total = 0.0
    for name, p in model.named_parameters():
        if name.endswith("weight"):
            total = total + p.abs().sum()
    return total


features = torch.randn(200, 30)
coef = torch.zeros(30, 1)
coef[:4] = 1.5
response = features @ coef + 0.1 * torch.randn(200, 1)
model = nn.Linear(30, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
mse = nn.MSELoss()
for it in range(40):
    optimizer.zero_grad()
    fit = mse(model(features), response)
    penalty = l1_norm(model)
    loss = fit + 0.05 * penalty
    loss.backward()
    optimizer.step()
print(fit.item(), float(penalty))
