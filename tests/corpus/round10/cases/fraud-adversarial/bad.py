import torch
import torch.nn as nn
import torch.nn.functional as F

EPS = 0.25
ALPHA = 0.1
PGD_STEPS = 4


def make_transactions(n=512, d=12):
    y = (torch.rand(n) < 0.3).long()
    direction = torch.randn(d)
    x = torch.randn(n, d) + 0.9 * y[:, None] * direction
    return x, y


def pgd(model, x, y):
    delta = torch.empty_like(x).uniform_(-EPS, EPS).requires_grad_(True)
    for _ in range(PGD_STEPS):
        F.cross_entropy(model(x + delta), y).backward()
        with torch.no_grad():
            delta += ALPHA * delta.grad.sign()
            delta.clamp_(-EPS, EPS)
        delta.grad.zero_()
    return (x + delta).detach()


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    x_adv = pgd(model, x, y)
    loss = F.cross_entropy(model(x_adv), y)
    loss.backward()
    optimizer.step()
    return loss.item(), x_adv


torch.manual_seed(21)
X, Y = make_transactions()
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

running = []
for epoch in range(5):
    total = 0.0
    for idx in torch.randperm(len(X)).split(64):
        xb, yb = X[idx], Y[idx]
        value, _ = train_step(model, optimizer, xb, yb)
        total += value * len(idx)
    running.append(total / len(X))
    print(f"epoch {epoch}: robust loss {running[-1]:.4f}")

clean_acc = (model(X).argmax(1) == Y).float().mean().item()
robust_acc = (model(pgd(model, X, Y)).argmax(1) == Y).float().mean().item()
print(f"clean {clean_acc:.3f} robust {robust_acc:.3f}")
