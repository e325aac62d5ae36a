import torch
from torch import nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, features, dim):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, dim))
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x):
        return F.relu(self.norm(self.layers(x)))


class FineTuned(nn.Module):
    """The backbone stays as it was trained: no gradients, no new statistics."""

    def __init__(self, backbone, dim, outputs):
        super().__init__()
        self.backbone = backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, outputs))

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


class BestKeeper:
    def __init__(self, module):
        self.module = module
        self.score = float("-inf")

    def offer(self, score):
        if score > self.score:
            self.score = score
            self.state = {name: value.detach().clone() for name, value in self.module.state_dict().items()}

    def restore(self):
        self.module.load_state_dict(self.state)


def assays(count, projection, classes, noise=0.5):
    label = torch.randint(0, classes, (count,))
    return projection[label] + noise * torch.randn(count, projection.shape[1]), label


def accuracy(model, data):
    model.eval()
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def train(model, data, valid, epochs, lr, keeper=None):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    x, y = data
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(y)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        score = accuracy(model, valid)
        if keeper is not None:
            keeper.offer(score)
    return score


torch.manual_seed(44)
source = torch.randn(10, 20)
backbone = Backbone(20, 32)
pretrained = nn.Sequential(backbone, nn.Linear(32, 10))
print("source", train(pretrained, assays(1280, source, 10), assays(400, source, 10), epochs=4, lr=3e-3))

target = torch.cat([source[:3] + 0.8 * torch.randn(3, 20), torch.randn(1, 20)])
model = FineTuned(backbone, 32, 4)
keeper = BestKeeper(model.head)
valid = assays(400, target, 4, noise=1.0)
train(model, assays(256, target, 4, noise=1.0), valid, epochs=12, lr=5e-3, keeper=keeper)
keeper.restore()
print("target", accuracy(model, valid))
