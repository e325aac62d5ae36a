import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=1)
criterion = nn.CrossEntropyLoss()
X = torch.randn(120, 6)
y = (X[:, 0] - X[:, 1] > 0).long()
Xt, yt, Xv, yv = X[:80], y[:80], X[80:], y[80:]


def accuracy():
    model.eval()
    with torch.no_grad():
        return (model(Xv).argmax(1) == yv).float().mean().item()


best = 0.0
for epoch in range(8):
    model.train()
    for i in range(0, 80, 20):
        optimizer.zero_grad()
        loss = criterion(model(Xt[i : i + 20]), yt[i : i + 20])
        loss.backward()
        optimizer.step()
    acc = accuracy()
    scheduler.step(acc)
    if acc > best:
        best = acc
    print(f"epoch {epoch}: val acc {acc:.3f} (best {best:.3f}) lr {optimizer.param_groups[0]['lr']}")
