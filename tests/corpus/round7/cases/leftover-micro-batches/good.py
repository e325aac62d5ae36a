import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def build(seed):
    torch.manual_seed(seed)
    x = torch.randn(100, 8)
    y = x[:, :1].sin() + 0.5 * x[:, 1:2]
    net = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 1))
    return net, DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)


def fit(net, loader, epochs, accum=4):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    updates = 0
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            start = i - i % accum
            window = min(accum, len(loader) - start)
            loss = F.mse_loss(net(x), y) / window
            loss.backward()
            if (i + 1) % accum == 0 or i + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                updates += 1
        print(f"epoch {epoch}: {loss.item() * window:.4f}")
    return updates


net, loader = build(12)
updates = fit(net, loader, epochs=3)
print("updates", updates)
