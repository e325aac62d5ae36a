import torch
import torch.nn as nn
import torch.nn.functional as F


class Bayesish(nn.Module):
    def __init__(self, p=0.2):
        super().__init__()
        self.a, self.b, self.p = nn.Linear(1, 64), nn.Linear(64, 1), p

    def forward(self, x, sample=False):
        h = torch.tanh(self.a(x))
        return self.b(F.dropout(h, self.p, training=self.training or sample))


torch.manual_seed(22)
net = Bayesish()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.rand(80, 1) * 4 - 2
y = x.sin() + 0.1 * torch.randn(80, 1)
for _ in range(40):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    draws = torch.stack([net(x, sample=True) for _ in range(30)])
    point = net(x)
print(loss.item(), draws.std(0).mean().item(), F.mse_loss(point, y).item())
