import torch
import torch.nn as nn
import torch.nn.functional as F


class Bayesian(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 24), nn.Linear(24, 1)

    def forward(self, x, sample=False):
        h = torch.relu(self.a(x))
        return self.b(F.dropout(h, 0.2, training=self.training or sample))


torch.manual_seed(44)
model = Bayesian()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    model.train()
    x = torch.randn(32, 3)
    loss = F.mse_loss(model(x), x[:, :1] ** 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
model.eval()
with torch.no_grad():
    draws = torch.stack([model(torch.ones(4, 3), sample=True) for _ in range(10)])
print(draws.mean(0).squeeze(1), draws.std(0).squeeze(1))
