import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(inplace=True), nn.Linear(32, 32), nn.ReLU(inplace=True))
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))


class FreeTrainer:
    def __init__(self, model, batch, shape, radius=0.2, replays=3, lr=0.05):
        self.model, self.radius, self.replays = model, radius, replays
        self.delta = torch.zeros(batch, *shape, requires_grad=True)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def replay(self, x, y):
        for _ in range(self.replays):
            loss = F.cross_entropy(self.model((x + self.delta).clamp(0, 1)), y)
            self.optimizer.zero_grad()
            self.delta.grad = None
            loss.backward()
            with torch.no_grad():
                self.delta.add_(self.radius * self.delta.grad.sign()).clamp_(-self.radius, self.radius)
            self.optimizer.step()
        return loss.item()


def loader(centres, steps, batch):
    for _ in range(steps):
        y = torch.randint(0, len(centres), (batch,))
        yield (centres[y] + 0.1 * torch.randn(batch, 16)).clamp(0, 1), y


torch.manual_seed(149)
centres = torch.rand(3, 16)
trainer = FreeTrainer(Net(), batch=32, shape=(16,))
for x, y in loader(centres, steps=8, batch=32):
    loss = trainer.replay(x, y)
x, y = next(loader(centres, 1, 200))
with torch.no_grad():
    clean = (trainer.model(x).argmax(1) == y).float().mean().item()
print(f"loss {loss:.3f} clean accuracy {clean:.2f}")
