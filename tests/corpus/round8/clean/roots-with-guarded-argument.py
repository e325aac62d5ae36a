import torch
import torch.nn as nn


def option_kink(s, strike):
    """Square root above the strike, zero below, with a finite slope on both sides."""
    gap = s - strike
    above = gap > 1e-3
    return torch.where(above, torch.sqrt(torch.where(above, gap, torch.ones_like(gap))), torch.zeros_like(gap))


class Hedge(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1))
        self.strike = nn.Parameter(torch.tensor(1.0))

    def forward(self, path):
        wealth = torch.zeros(len(path))
        for t in range(path.shape[1] - 1):
            clock = torch.full((len(path), 1), t / path.shape[1])
            ratio = self.net(torch.cat([path[:, t:t + 1], clock], 1)).squeeze(1)
            wealth = wealth + ratio * (path[:, t + 1] - path[:, t])
        return wealth - option_kink(path[:, -1], self.strike)


torch.manual_seed(36)
hedge = Hedge()
optimizer = torch.optim.Adam(hedge.parameters(), lr=1e-2)
for step in range(15):
    path = (0.1 * torch.randn(128, 9)).cumsum(1).exp()
    outcome = hedge(path)
    loss = outcome.var() + (hedge.strike - 1.1) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item(), hedge.strike.item())
