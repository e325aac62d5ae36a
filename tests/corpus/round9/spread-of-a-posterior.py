# /// case
# title = "What is assigned is an expression of a Parameter, and not the Parameter"
# category = "leaf"
# kind = "arithmetic-on-parameter"
# kinds_also_ok = ["parameter-scaled-after-wrapping", "non-leaf-parameter", "parameter-not-registered"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["rho", "Parameter"]
# symptom = "the spread is no parameter and is never trained"
# symptom_check = "'rho' not in dict(model.posterior.named_parameters()) and not model.posterior.rho.is_leaf"
# cause = "Parameter - 2 is a plain, non-leaf tensor, which the module does not register."
# fix = "subtract inside of nn.Parameter"
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence


class MeanField(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(size))
        self.rho = nn.Parameter(torch.zeros(size)) - 2.0  #- here
#+         self.rho = nn.Parameter(torch.zeros(size) - 2.0)

    def distribution(self):
        return Normal(self.loc, F.softplus(self.rho))  #! also


class Sinusoids:
    """y = sum of w_k sin(k x), with a distribution over w."""

    def __init__(self, count, noise):
        self.posterior = MeanField(count)
        self.prior = Normal(torch.zeros(count), torch.ones(count))
        self.orders = torch.arange(1, count + 1)
        self.noise = noise

    def features(self, x):
        return torch.sin(x[:, None] * self.orders)

    def negative_elbo(self, x, y, samples):
        q = self.posterior.distribution()
        weights = q.rsample((samples,))
        predicted = weights @ self.features(x).T
        likelihood = Normal(predicted, self.noise).log_prob(y).sum(-1).mean()
        return kl_divergence(q, self.prior).sum() - likelihood


torch.manual_seed(29)
x = torch.rand(50) * 2 * math.pi
y = 0.8 * x.sin() - 0.5 * (3 * x).sin() + 0.2 * torch.randn(50)
model = Sinusoids(5, noise=0.2)
optimizer = torch.optim.RMSprop(model.posterior.parameters(), lr=2e-2)  #! also
for iteration in range(30):
    loss = model.negative_elbo(x, y, samples=8)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 10 == 0:
        print(iteration, round(loss.item(), 2))
spread = F.softplus(model.posterior.rho).tolist()
print("mean", [round(v, 2) for v in model.posterior.loc.tolist()], "spread", [round(v, 3) for v in spread])
