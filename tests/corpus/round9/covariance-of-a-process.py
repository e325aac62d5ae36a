# /// case
# title = "The covariance is computed once, with its graph, and used in each iteration"
# category = "retention"
# kind = "graph-reused-after-backward"
# kinds_also_ok = ["second-backward", "computed-once-outside-loop", "stale-graph"]
# severity = "error"
# names = ["covariance", "kernel"]
# symptom = "the second backward raises"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "The graph of the covariance belongs to the first iteration, whose backward has freed it (and its values would be those of the first hyperparameters)."
# fix = "compute the covariance in factor"
# ///
import math

import torch
from torch import nn


class Matern32(nn.Module):
    def __init__(self, lengthscale=0.3, variance=1.0):
        super().__init__()
        self.log_lengthscale = nn.Parameter(torch.tensor(math.log(lengthscale), dtype=torch.float64))
        self.log_variance = nn.Parameter(torch.tensor(math.log(variance), dtype=torch.float64))

    def forward(self, a, b):
        scaled = math.sqrt(3) * (a[:, None] - b[None, :]).abs() / self.log_lengthscale.exp()
        return self.log_variance.exp() * (1 + scaled) * torch.exp(-scaled)


class Regression(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.kernel = Matern32()
        self.log_noise = nn.Parameter(torch.tensor(-2.0, dtype=torch.float64))
        self.x, self.y = x, y
        self.covariance = self.kernel(self.x, self.x)  #- here

    def factor(self):
#+         covariance = self.kernel(self.x, self.x)
        noise = self.log_noise.exp() * torch.eye(len(self.x), dtype=self.x.dtype)
        return torch.linalg.cholesky(self.covariance + noise)  #- here
#+         return torch.linalg.cholesky(covariance + noise)

    def negative_log_marginal(self):
        factor = self.factor()
        alpha = torch.cholesky_solve(self.y[:, None], factor)[:, 0]
        return 0.5 * self.y @ alpha + factor.diagonal().log().sum() + 0.5 * len(self.y) * math.log(2 * math.pi)

    @torch.no_grad()
    def mean(self, points):
        return self.kernel(points, self.x) @ torch.cholesky_solve(self.y[:, None], self.factor())[:, 0]


torch.manual_seed(2)
x = torch.rand(30, dtype=torch.float64).sort().values
y = (9 * x).sin() + 0.2 * torch.randn(30, dtype=torch.float64)
gp = Regression(x, y)
optimizer = torch.optim.Adam(gp.parameters(), lr=0.05)
for iteration in range(20):
    optimizer.zero_grad()
    loss = gp.negative_log_marginal()
    loss.backward()  #! also
    optimizer.step()
    if iteration % 5 == 0:
        print(f"{iteration}: {loss.item():.3f}, lengthscale {gp.kernel.log_lengthscale.exp().item():.3f}")
print(gp.mean(torch.linspace(0, 1, 5, dtype=torch.float64)))
