import math

import torch
from torch import nn


class ExactGP(nn.Module):
    def __init__(self, dims, jitter=1e-5):
        super().__init__()
        self.raw_lengths = nn.Parameter(torch.zeros(dims))
        self.raw_amplitude = nn.Parameter(torch.zeros(()))
        self.raw_noise = nn.Parameter(torch.tensor(-1.0))
        self.jitter = jitter

    def distance(self, a, b):
        lengths = nn.functional.softplus(self.raw_lengths)
        squared = (a[:, None] / lengths - b[None] / lengths).square().sum(-1)
        apart = squared > 0
        return torch.where(apart, torch.where(apart, squared, torch.ones_like(squared)).sqrt(), torch.zeros_like(squared))

    def kernel(self, a, b):
        r = math.sqrt(3) * self.distance(a, b)
        return self.raw_amplitude.exp() * (1 + r) * torch.exp(-r)

    def factor(self, x):
        k = self.kernel(x, x)
        k.diagonal().add_(self.raw_noise.exp() + self.jitter)
        return torch.linalg.cholesky(k)

    def neg_log_likelihood(self, x, y):
        chol = self.factor(x)
        alpha = torch.cholesky_solve(y[:, None], chol)
        return 0.5 * (y @ alpha).squeeze() + chol.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, x, y, new):
        return self.kernel(new, x) @ torch.cholesky_solve(y[:, None], self.factor(x))


torch.manual_seed(52)
x = 4 * torch.rand(60, 2)
y = torch.sin(2 * x[:, 0]) + 0.1 * torch.randn(60)
gp = ExactGP(dims=2)
optimizer = torch.optim.Adam(gp.parameters(), lr=0.08)
nll = []
for step in range(60):
    optimizer.zero_grad()
    loss = gp.neg_log_likelihood(x, y)
    loss.backward()
    optimizer.step()
    nll.append(loss.item())
new = 4 * torch.rand(20, 2)
error = (gp.predict(x, y, new).squeeze(-1) - torch.sin(2 * new[:, 0])).abs().mean()
print(f"{nll[0]:.3f} -> {nll[-1]:.3f}, test error {error:.3f}, lengths {gp.raw_lengths.tolist()}")
