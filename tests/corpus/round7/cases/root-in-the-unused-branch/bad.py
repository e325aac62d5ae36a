import torch
import torch.nn as nn


def box_cox(x, power):
    raised = (x.clamp(min=0.05) ** power - 1) / power
    return torch.where(power.abs() < 1e-3, x.clamp(min=0.05).log(), raised)


def signed_log(x):
    return torch.where(x > 0, torch.log1p(x.sqrt()), 0.1 * x)


class FeatureNet(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, 12)
        self.power = nn.Parameter(torch.full((12,), 0.5))
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        h = self.mix(x)
        return self.out(torch.cat([signed_log(h), box_cox(h, self.power)], dim=1)).squeeze(1)


torch.manual_seed(86)
model = FeatureNet(5)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for step in range(10):
    x = torch.rand(24, 5) * 2 - 0.5
    y = x.prod(dim=1)
    optimizer.zero_grad()
    loss = torch.mean((model(x) - y) ** 2)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses)
