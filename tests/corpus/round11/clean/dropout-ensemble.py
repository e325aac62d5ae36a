import torch
from torch import nn
import torch.nn.functional as F


class ResidualBlock(nn.Module):
    def __init__(self, width, rate):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.inner = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(rate), nn.Linear(width, width))

    def forward(self, x):
        return x + self.inner(self.norm(x))


class Backbone(nn.Sequential):
    def __init__(self, inputs, width=32, depth=2, rate=0.15):
        super().__init__(nn.Linear(inputs, width), *(ResidualBlock(width, rate) for _ in range(depth)))


class TransferModel(nn.Module):
    """A pre-trained backbone of which only the last block is tuned, with its statistics left alone."""

    def __init__(self, backbone, width=32):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, 2))
        self.backbone.requires_grad_(False)
        self.backbone[-1].inner.requires_grad_(True)

    def train(self, mode=True):
        super().train(mode)
        for module in self.backbone.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.eval()
        return self

    def forward(self, x):
        mean, raw = self.head(self.backbone(x)).unbind(-1)
        return mean, F.softplus(raw) + 1e-3


def gaussian_nll(prediction, target, beta=0.5):
    mean, variance = prediction
    terms = 0.5 * (variance.log() + (target - mean).square() / variance)
    return (terms * variance.detach() ** beta).mean()


def predict_with_dropout(model, x, draws):
    """Monte-Carlo dropout: everything in eval mode but the dropout layers."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    with torch.no_grad():
        means, variances = map(torch.stack, zip(*(model(x) for _ in range(draws))))
    model.eval()
    return means.mean(0), variances.mean(0), means.var(0)


def pretrain(backbone, steps):
    head = nn.Linear(32, 3)
    optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=3e-3)
    backbone.train()
    for _ in range(steps):
        x = torch.randn(64, 4)
        y = torch.stack([torch.sin(x[:, 0]), x[:, 1] * x[:, 2], x[:, 3].abs()], 1)
        loss = F.mse_loss(head(backbone(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(24)
backbone = Backbone(4)
print(f"pre-training {pretrain(backbone, 150):.3f}")
model = TransferModel(backbone)
tuned = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(tuned, lr=3e-3)
x = torch.randn(200, 4)
y = torch.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.2 * torch.randn(200)
for epoch in range(25):
    model.train()
    for index in torch.randperm(len(x)).split(40):
        loss = gaussian_nll(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
_, noise, near = predict_with_dropout(model, torch.randn(100, 4), draws=30)
_, _, far = predict_with_dropout(model, 4 * torch.randn(100, 4), draws=30)
print(f"loss {loss.item():.3f}, noise {noise.mean().item():.3f}, model variance {near.mean().item():.4f} near, {far.mean().item():.4f} far")
