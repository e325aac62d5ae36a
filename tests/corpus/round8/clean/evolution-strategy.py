import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Env:
    """Score of a controller on a noisy point mass, not differentiable by intention."""

    def __call__(self, net, steps=12):
        state, score = torch.tensor([1.0, 0.0]), 0.0
        for _ in range(steps):
            push = float(net(state).sign())
            state = torch.stack([state[0] + 0.2 * state[1], state[1] + 0.2 * push])
            score -= float(state[0] ** 2)
        return score


@torch.no_grad()
def estimate(net, env, sigma, pairs):
    centre = parameters_to_vector(net.parameters()).clone()
    gradient = torch.zeros_like(centre)
    for _ in range(pairs):
        noise = torch.randn_like(centre)
        vector_to_parameters(centre + sigma * noise, net.parameters())
        up = env(net)
        vector_to_parameters(centre - sigma * noise, net.parameters())
        gradient += (up - env(net)) * noise / (2 * sigma * pairs)
    vector_to_parameters(centre, net.parameters())
    return gradient


torch.manual_seed(29)
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-2)
env = Env()
for generation in range(8):
    ascent = estimate(net, env, sigma=0.1, pairs=8)
    start = 0
    for p in net.parameters():
        p.grad = -ascent[start:start + p.numel()].view_as(p).clone()
        start += p.numel()
    optimizer.step()
    with torch.no_grad():
        print(generation, env(net))
