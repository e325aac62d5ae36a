import torch
from torch import nn
from torch.distributions import Bernoulli


class SensorChoice(nn.Module):
    """Which of the sensors to switch on: a product of Bernoullis."""

    def __init__(self, sensors):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(sensors))

    def draw(self, count):
        q = Bernoulli(logits=self.logits)
        chosen = q.sample((count,))
        return chosen, q.log_prob(chosen).sum(-1), q.entropy().sum()


def information(chosen, rows, prior=1.0):
    precision = prior * torch.eye(rows.shape[1]) + torch.einsum("ks,si,sj->kij", chosen, rows, rows)
    return torch.logdet(precision)


torch.manual_seed(9)
rows = torch.randn(14, 4)
choice = SensorChoice(14)
scale = nn.Parameter(torch.tensor(1.0))
optimizer = torch.optim.Adam([
    {"params": choice.parameters(), "lr": 0.1},
    {"params": [scale], "lr": 0.02},
])
baseline = None
for step in range(25):
    chosen, log_prob, entropy = choice.draw(32)
    utility = information(chosen, scale * rows) - 0.4 * chosen.sum(-1) - 0.5 * scale.square()
    reward = utility.detach()
    baseline = reward.mean() if baseline is None else 0.8 * baseline + 0.2 * reward.mean()
    surrogate = ((reward - baseline) * log_prob).mean() + utility.mean() + 0.01 * entropy
    optimizer.zero_grad()
    (-surrogate).backward()
    optimizer.step()
print(choice.logits.sigmoid().tolist(), scale.item(), baseline.item())
