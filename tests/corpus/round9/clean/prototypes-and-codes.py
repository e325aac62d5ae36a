import torch
import torch.nn as nn
import torch.nn.functional as F


class SwAV(nn.Module):
    def __init__(self, inputs=12, width=8, prototypes=10):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, width))
        self.prototypes = nn.Linear(width, prototypes, bias=False)

    def forward(self, x):
        z = F.normalize(self.encoder(x), dim=1)
        return self.prototypes(z)

    @torch.no_grad()
    def normalize_prototypes(self):
        self.prototypes.weight.copy_(F.normalize(self.prototypes.weight, dim=1))


@torch.no_grad()
def sinkhorn(scores, epsilon=0.05, iterations=3):
    q = torch.exp((scores - scores.max()) / epsilon).T
    q /= q.sum()
    for _ in range(iterations):
        q /= q.sum(dim=1, keepdim=True) * q.shape[0]
        q /= q.sum(dim=0, keepdim=True) * q.shape[1]
    return (q * q.shape[1]).T


def swapped_loss(first, second, temperature=0.1):
    codes = sinkhorn(first), sinkhorn(second)
    return -0.5 * sum((q * F.log_softmax(s / temperature, dim=1)).sum(1).mean() for q, s in zip(codes, (second, first)))


def jitter(x):
    return x + 0.15 * torch.randn_like(x)


torch.manual_seed(103)
data = torch.randn(6, 12)[torch.randint(0, 6, (240,))] + 0.2 * torch.randn(240, 12)
model = SwAV()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
freeze_prototypes_for = 4
step = 0
for epoch in range(3):
    for batch in data[torch.randperm(240)].split(60):
        model.normalize_prototypes()
        loss = swapped_loss(model(jitter(batch)), model(jitter(batch)))
        optimizer.zero_grad()
        loss.backward()
        if step < freeze_prototypes_for:
            model.prototypes.weight.grad = None
        optimizer.step()
        step += 1
    print(epoch, round(loss.item(), 4))
