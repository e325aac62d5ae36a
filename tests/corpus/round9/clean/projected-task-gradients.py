import torch
from torch import nn
import torch.nn.functional as F


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(7, 30), nn.GELU(), nn.Linear(30, 30), nn.GELU())
        self.heads = nn.ModuleList([nn.Linear(30, 1), nn.Linear(30, 4), nn.Linear(30, 7)])

    def forward(self, x):
        h = self.trunk(x)
        return [head(h) for head in self.heads]


def losses_of(model, x):
    place, kind, back = model(x)
    quadrant = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()
    return [F.mse_loss(place.squeeze(1), x.prod(1)), F.cross_entropy(kind, quadrant), F.l1_loss(back, x.flip(1))]


class Surgery:
    def __init__(self, optimizer, shared):
        self.optimizer, self.shared = optimizer, list(shared)

    def flatten(self):
        return torch.cat([p.grad.flatten() for p in self.shared])

    def backward(self, losses):
        self.optimizer.zero_grad(set_to_none=True)
        flat = []
        for number, loss in enumerate(losses, 1):
            loss.backward(retain_graph=number < len(losses))
            flat.append(self.flatten())
            for parameter in self.shared:
                parameter.grad = None
        merged = sum(self.project(one, [other for other in flat if other is not one]) for one in flat)
        for parameter, piece in zip(self.shared, merged.split([p.numel() for p in self.shared])):
            parameter.grad = piece.view_as(parameter).clone()

    @staticmethod
    def project(grad, others):
        for place in torch.randperm(len(others)).tolist():
            other = others[place]
            inner = grad @ other
            if inner < 0:
                grad = grad - inner / other.square().sum().clamp(min=1e-12) * other
        return grad


torch.manual_seed(163)
model = Shared()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
surgery = Surgery(optimizer, model.trunk.parameters())
for step in range(15):
    losses = losses_of(model, torch.rand(64, 7) * 2 - 1)
    surgery.backward(losses)
    optimizer.step()
print([round(loss.item(), 3) for loss in losses])
