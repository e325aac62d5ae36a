import torch
from torch import nn
from torch.distributions import Independent, Normal

torch.manual_seed(0)


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", torch.tensor(mask))
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 4))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, dim=1)
        s = torch.tanh(s) * (1 - self.mask)
        t = t * (1 - self.mask)
        return x * s.exp() + t, s.sum(1)

    def inverse(self, z):
        s, t = self.net(z * self.mask).chunk(2, dim=1)
        s = torch.tanh(s) * (1 - self.mask)
        return (z - t * (1 - self.mask)) * (-s).exp()


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(m) for m in ([1.0, 0.0], [0.0, 1.0]) * 2)
        self.register_buffer("loc", torch.zeros(2))

    def log_prob(self, x):
        total = 0
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return Independent(Normal(self.loc, 1.0), 1).log_prob(x) + total

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, 2)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


flow = Flow()
opt = torch.optim.Adam(flow.parameters(), lr=5e-3)
for step in range(8):
    x = torch.randn(64, 2) * torch.tensor([2.0, 0.3]) + 1
    nll = -flow.log_prob(x).mean()
    opt.zero_grad()
    nll.backward()
    opt.step()
print(nll.item(), flow.sample(4))
