import torch
from torch import nn

torch.manual_seed(21)


def member():
    return nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))


members = nn.ModuleList([member()] * 4)
opt = torch.optim.Adam(members.parameters(), lr=1e-2)
x = torch.linspace(-2, 2, 40).unsqueeze(1)
y = torch.sin(2 * x)
for epoch in range(25):
    opt.zero_grad()
    loss = sum(nn.functional.mse_loss(m(x), y) for m in members) / len(members)
    loss.backward()
    opt.step()
with torch.no_grad():
    spread = torch.stack([m(x * 2) for m in members]).std(0)
print(loss.item(), spread.max().item())
