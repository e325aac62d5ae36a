# /// case
# title = "The mean of the weights is taken before the logarithm"
# category = "numerics"
# kind = "log-of-mean-of-exp"
# kinds_also_ok = ["exp-underflow", "logsumexp-by-hand"]
# severity = "error"
# names = ["exp", "log", "bound"]
# symptom = "the loss is infinite, the parameters become nan, and the distribution refuses them"
# raises = "ValueError"
# raises_message = "to satisfy the constraint"
# cause = "Weights of exp(-300) and less are 0 in single precision, and the logarithm of 0 has no useful gradient."
# fix = "torch.logsumexp(log_weights, 0) - math.log(count)"
# ///
import math

import torch
from torch import nn
from torch.distributions import MultivariateNormal, Normal


class Decay(nn.Module):
    """Amplitude and rate of a decay, with a joint Gaussian over their logarithms."""

    def __init__(self):
        super().__init__()
        self.loc = nn.Parameter(torch.tensor([0.0, -1.0]))
        self.raw = nn.Parameter(torch.tensor([[-1.5, 0.0], [0.0, -1.5]]))

    def proposal(self):
        factor = self.raw.tril(-1) + torch.diag(self.raw.diagonal().exp())
        return MultivariateNormal(self.loc, scale_tril=factor)  #! also

    def log_weights(self, times, counts, samples):
        q = self.proposal()
        z = q.rsample((samples,))
        amplitude, rate = z.exp().unbind(-1)
        curve = amplitude[:, None] * torch.exp(-rate[:, None] * times)
        log_likelihood = Normal(curve, 0.05).log_prob(counts).sum(-1)
        log_prior = Normal(0.0, 2.0).log_prob(z).sum(-1)
        return log_likelihood + log_prior - q.log_prob(z)


def bound(log_weights):
    return log_weights.exp().mean(0).log()  #- here
#+     return torch.logsumexp(log_weights, 0) - math.log(len(log_weights))


torch.manual_seed(53)
times = torch.linspace(0, 6, 60)
counts = 1.6 * torch.exp(-0.55 * times) + 0.05 * torch.randn(60)
model = Decay()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
history = []
for iteration in range(25):
    optimizer.zero_grad()
    loss = -bound(model.log_weights(times, counts, 16))  #! also
    loss.backward()  #! also
    optimizer.step()
    history.append(loss.item())
print(history[0], history[-1])
print(model.loc.exp().tolist())
