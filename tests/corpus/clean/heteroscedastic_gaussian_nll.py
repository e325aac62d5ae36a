import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh())
        self.mean = nn.Linear(24, 1)
        self.var = nn.Sequential(nn.Linear(24, 1), nn.Softplus())

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.var(h) + 1e-6


x = torch.linspace(-3, 3, 120).unsqueeze(1)
y = x.sin() + 0.3 * x.abs() * torch.randn_like(x)
model, crit = Net(), nn.GaussianNLLLoss()
opt = torch.optim.Adam(model.parameters(), 5e-3)
warm = 5
for epoch in range(12):
    mu, var = model(x)
    if epoch < warm:
        loss = (mu - y).pow(2).mean()
    else:
        loss = crit(mu, y, var)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    print(epoch, "mse" if epoch < warm else "nll", loss.item())
