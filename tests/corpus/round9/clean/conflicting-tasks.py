import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoHeads(nn.Module):
    def __init__(self, features=8, width=24):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.click, self.dwell = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x):
        h = self.shared(x)
        return self.click(h).squeeze(-1), self.dwell(h).squeeze(-1)


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def project(gradient, others):
    result = gradient.clone()
    for other in others:
        dot = result @ other
        if dot < 0:
            result -= dot / other.square().sum().clamp(min=1e-12) * other
    return result


def assign(parameters, vector):
    for p, part in zip(parameters, vector.split([p.numel() for p in parameters])):
        p.grad = part.view_as(p).clone()


class SurgeryStep:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.shared = list(model.shared.parameters())

    def __call__(self, losses):
        self.optimizer.zero_grad()
        per_task = [flat(torch.autograd.grad(loss, self.shared, retain_graph=True)) for loss in losses]
        sum(losses).backward()
        merged = [project(g, [o for o in per_task if o is not g]) for g in per_task]
        assign(self.shared, torch.stack(merged).sum(0))
        self.optimizer.step()


torch.manual_seed(6)
model = TwoHeads()
step = SurgeryStep(model, torch.optim.Adam(model.parameters(), lr=5e-3))
for iteration in range(20):
    x = torch.randn(64, 8)
    click, dwell = model(x)
    losses = [
        F.binary_cross_entropy_with_logits(click, (x[:, 0] > 0).float()),
        F.mse_loss(dwell, x[:, 1] - x[:, 0]),
    ]
    step(losses)
print([round(loss.item(), 3) for loss in losses])
