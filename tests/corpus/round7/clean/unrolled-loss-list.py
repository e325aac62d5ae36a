import torch
import torch.nn as nn
import torch.nn.functional as F


class Refiner(nn.Module):
    """Estimates are refined over some iterations; the estimate is detached before each."""

    def __init__(self, iterations=4):
        super().__init__()
        self.cell, self.delta, self.iterations = nn.GRUCell(6, 16), nn.Linear(16, 2), iterations

    def forward(self, observed):
        h = observed.new_zeros(len(observed), 16)
        estimate = observed.new_zeros(len(observed), 2)
        estimates = []
        for _ in range(self.iterations):
            estimate = estimate.detach()
            h = self.cell(torch.cat([observed, estimate], dim=1), h)
            estimate = estimate + self.delta(h)
            estimates.append(estimate)
        return estimates


torch.manual_seed(133)
model = Refiner()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
history = []
for step in range(15):
    observed = torch.randn(32, 4)
    truth = torch.stack([observed[:, 0] * observed[:, 1], observed[:, 2:].sum(1)], dim=1)
    estimates = model(observed)
    losses = [0.8 ** (len(estimates) - 1 - i) * F.l1_loss(e, truth) for i, e in enumerate(estimates)]
    optimizer.zero_grad()
    sum(losses).backward()
    optimizer.step()
    history.append([loss.item() for loss in losses])
print(history[0], history[-1])
