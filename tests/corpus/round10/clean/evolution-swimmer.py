import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


@torch.no_grad()
def fitness(policy, starts, horizon=20):
    heading, goal = starts.unbind(1)
    score = torch.zeros(len(starts))
    for _ in range(horizon):
        gap = goal - heading
        stroke = policy(torch.stack([gap.sin(), gap.cos()], 1)).tanh().squeeze(1)
        heading = heading + 0.3 * stroke
        score += gap.cos() - 0.05 * stroke.square()
    return score.mean().item() / horizon


def ranks(values):
    order = torch.tensor(values).argsort().argsort().float()
    return order / (len(values) - 1) - 0.5


class EvolutionStrategy:
    def __init__(self, policy, population=20, sigma=0.1, lr=0.05):
        self.policy, self.population, self.sigma = policy, population, sigma
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=lr)

    def generation(self, starts):
        centre = parameters_to_vector(self.policy.parameters()).detach().clone()
        noise = torch.randn(self.population // 2, len(centre))
        noise = torch.cat([noise, -noise])
        scores = []
        for eps in noise:
            vector_to_parameters(centre + self.sigma * eps, self.policy.parameters())
            scores.append(fitness(self.policy, starts))
        vector_to_parameters(centre, self.policy.parameters())
        ascent = (ranks(scores)[:, None] * noise).mean(0) / self.sigma
        offset = 0
        for p in self.policy.parameters():
            p.grad = -ascent[offset : offset + p.numel()].view_as(p)
            offset += p.numel()
        self.optimizer.step()
        return sum(scores) / len(scores)


torch.manual_seed(55)
policy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
es = EvolutionStrategy(policy)
curve = []
for _ in range(25):
    starts = (torch.rand(32, 2) * 2 - 1) * 3.14
    curve.append(es.generation(starts))
print("fitness", curve[0], "->", curve[-1])
