from dataclasses import dataclass
import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Attack:
    eps: float = 0.15
    alpha: float = 0.06
    steps: int = 4

    def __call__(self, model, x, y):
        training = model.training
        model.eval()
        x_adv = (x + torch.empty_like(x).uniform_(-self.eps, self.eps)).clamp(0, 1)
        for _ in range(self.steps):
            x_adv = x_adv.detach().requires_grad_(True)
            loss = F.cross_entropy(model(x_adv), y)
            grad, = torch.autograd.grad(loss, x_adv)
            x_adv = x_adv.detach() + self.alpha * grad.sign()
            x_adv = torch.min(torch.max(x_adv, x - self.eps), x + self.eps).clamp(0, 1)
        model.train(training)
        return x_adv.detach()


def glyphs(n):
    protos = (torch.rand(5, 64, generator=torch.Generator().manual_seed(2)) > 0.5).float()
    y = torch.randint(0, 5, (n,))
    return (0.5 + 0.35 * (protos[y] - 0.5) + 0.1 * torch.randn(n, 64)).clamp(0, 1), y


def build():
    return nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 5))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def adversarial_training(model, attack, x, y, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(50):
            adv = attack(model, x[idx], y[idx])
            opt.zero_grad()
            loss = 0.5 * (F.cross_entropy(model(adv), y[idx]) + F.cross_entropy(model(x[idx]), y[idx]))
            loss.backward()
            opt.step()
        yield epoch, loss.item()


torch.manual_seed(50)
torch.set_num_threads(1)
x, y = glyphs(400)
x_test, y_test = glyphs(200)
model, attack = build(), Attack()
for epoch, loss in adversarial_training(model, attack, x, y, epochs=8):
    print("epoch", epoch, "loss", round(loss, 4))
model.eval()
robust = accuracy(model, attack(model, x_test, y_test), y_test)
print("clean", accuracy(model, x_test, y_test), "robust", robust)
