import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils import parametrize


class FakeQuantize(nn.Module):
    """Symmetric per-row quantisation, passed straight through in the backward pass."""

    def __init__(self, bits):
        super().__init__()
        self.top = 2 ** (bits - 1) - 1

    def forward(self, weight):
        scale = weight.detach().abs().amax(1, keepdim=True).clamp(min=1e-8) / self.top
        grid = (weight / scale).round().clamp(-self.top, self.top) * scale
        return weight + (grid - weight).detach()


class KeepMask(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.register_buffer("mask", torch.ones(shape))

    def forward(self, weight):
        return weight * self.mask


class ObservedActivation(nn.Module):
    def __init__(self, bits, momentum=0.95):
        super().__init__()
        self.levels, self.momentum = 2 ** bits - 1, momentum
        self.register_buffer("ceiling", torch.tensor(1.0))

    def forward(self, x):
        x = x.relu()
        if self.training:
            with torch.no_grad():
                self.ceiling.mul_(self.momentum).add_(x.amax(), alpha=1 - self.momentum)
        bounded = torch.minimum(x, self.ceiling)
        stepped = (bounded * self.levels / self.ceiling).round() * self.ceiling / self.levels
        return bounded + (stepped - bounded).detach()


def build(bits):
    network = nn.Sequential(
        nn.Linear(12, 48), ObservedActivation(bits),
        nn.Linear(48, 24), ObservedActivation(bits),
        nn.Linear(24, 3),
    )
    for layer in network:
        if isinstance(layer, nn.Linear):
            parametrize.register_parametrization(layer, "weight", KeepMask(layer.weight.shape))
            parametrize.register_parametrization(layer, "weight", FakeQuantize(bits))
    return network


@torch.no_grad()
def sparsify(network, share):
    for layer in network:
        if isinstance(layer, nn.Linear):
            original = layer.parametrizations.weight.original.abs()
            keep = original > original.flatten().kthvalue(int(share * original.numel())).values
            layer.parametrizations.weight[0].mask.copy_(keep)


def problem(count):
    x = torch.randn(count, 12)
    score = torch.stack([x[:, 0] + x[:, 1].square(), 2 * x[:, 2] * x[:, 3], x[:, 4:6].sum(1)], 1)
    return x, score.argmax(1)


torch.manual_seed(31)
x, y = problem(600)
network = build(bits=4)
optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
for epoch in range(20):
    if epoch in (8, 12):
        sparsify(network, share=0.3 if epoch == 8 else 0.5)
    for index in torch.randperm(len(x)).split(100):
        loss = F.cross_entropy(network(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
network.eval()
with torch.no_grad(), parametrize.cached():
    test_x, test_y = problem(400)
    accuracy = (network(test_x).argmax(1) == test_y).float().mean().item()
    levels = [len(layer.weight[0].unique()) for layer in network if isinstance(layer, nn.Linear)]
print(f"loss {loss.item():.3f} accuracy {accuracy:.3f} levels in first rows {levels}")
