import torch
import torch.nn.functional as F
from torch import nn


class Probe(nn.Module):
    def __init__(self, encoder, width, classes):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.adapter = nn.Linear(width, width)
        nn.init.zeros_(self.adapter.weight)
        nn.init.zeros_(self.adapter.bias)
        self.gain = nn.Parameter(torch.ones(()))
        self.classifier = nn.Linear(width, classes)
        blocks = torch.block_diag(*[torch.ones(4, 4)] * (width // 4))
        self.adapter.weight.register_hook(lambda grad: grad * blocks)
        self.train()

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        h = self.encoder(x)
        return self.classifier(h + self.gain * self.adapter(h))


def make_encoder(features, width):
    return nn.Sequential(nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width))


def shifted(n, classes, means):
    y = torch.randint(0, classes, (n,))
    return means[y] + torch.randn(n, means.shape[1]), y


def denoising(encoder, x, width, steps=30):
    decoder = nn.Linear(width, x.shape[1])
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
    for _ in range(steps):
        batch = x[torch.randint(0, len(x), (64,))]
        loss = F.mse_loss(decoder(encoder(batch + 0.3 * torch.randn_like(batch))), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
    return loss.item()


torch.manual_seed(97)
means = 1.5 * torch.randn(4, 16)
x, y = shifted(320, 4, means)
encoder = make_encoder(16, 24)
rebuilt = denoising(encoder, x, 24)
probe = Probe(encoder, 24, 4)
optimizer = torch.optim.AdamW((p for p in probe.parameters() if p.requires_grad), lr=0.01)
losses = []
for epoch in range(6):
    probe.train()
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(probe(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(f"rebuilt {rebuilt:.3f}, probe {losses[0]:.3f} -> {losses[-1]:.3f}")
