import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
X = torch.randn(90, 10)
Y = X[:, :3].argmax(1)


def fit(epochs, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        for i in torch.randperm(90).split(30):
            opt.zero_grad()
            F.cross_entropy(model(X[i]), Y[i]).backward()
            opt.step()
    with torch.no_grad():
        return (model(X).argmax(1) == Y).float().mean().item()


print("dense", fit(3, 1e-2))
for round in range(2):
    for m in model:
        if isinstance(m, nn.Linear):
            prune.l1_unstructured(m, "weight", amount=0.4)
    print("pruned", round, fit(2, 5e-3))
for m in model:
    if isinstance(m, nn.Linear):
        prune.remove(m, "weight")
zero = sum((m.weight == 0).sum().item() for m in model if isinstance(m, nn.Linear))
print(zero)
