import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def stripes(n, angles):
    y = torch.randint(0, len(angles), (n,))
    a = torch.tensor(angles)[y]
    axis = torch.arange(12).float()
    phase = a.cos()[:, None, None] * axis[:, None] + a.sin()[:, None, None] * axis
    return TensorDataset((torch.sin(phase) + 0.4 * torch.randn(n, 12, 12)).unsqueeze(1), y)


def trunk():
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
    )


class Pretrained(nn.Module):
    def __init__(self, body, classes, frozen=False):
        super().__init__()
        self.body = body
        self.frozen = frozen
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16, classes)
        if frozen:
            for p in self.body.parameters():
                p.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            self.body.eval()
        return self

    def forward(self, x):
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            features = self.body(x)
        return self.fc(self.drop(features))


def learn(model, dataset, epochs, lr):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=lr)
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, dataset):
    model.eval()
    x, y = dataset.tensors
    return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(60)
torch.set_num_threads(1)
source = Pretrained(trunk(), 3)
learn(source, stripes(192, [0.0, 0.8, 1.6]), epochs=5, lr=5e-3)
snapshot = {k: v.clone() for k, v in source.body.state_dict().items()}
target = Pretrained(source.body, 2, frozen=True)
print("tuning loss", learn(target, stripes(96, [0.4, 1.2]), epochs=8, lr=2e-2))
unchanged = all(torch.equal(v, snapshot[k]) for k, v in target.body.state_dict().items())
print("accuracy", test(target, stripes(200, [0.4, 1.2])), "trunk unchanged", unchanged)
