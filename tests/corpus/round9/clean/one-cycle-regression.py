import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixer(nn.Module):
    def __init__(self, length, channels, hidden=32):
        super().__init__()
        self.time = nn.Sequential(nn.LayerNorm(length), nn.Linear(length, hidden), nn.GELU(), nn.Linear(hidden, length))
        self.channel = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, hidden), nn.GELU(), nn.Linear(hidden, channels))
        self.out = nn.Linear(length * channels, 1)

    def forward(self, x):
        x = x + self.time(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.channel(x)
        return self.out(x.flatten(1)).squeeze(-1)


def groups(model, weight_decay):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def fit(model, loader, epochs, peak):
    optimizer = torch.optim.AdamW(groups(model, 1e-2), lr=peak / 25)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=peak, total_steps=epochs * len(loader))
    for epoch in range(epochs):
        running = torch.zeros(())
        for x, y in loader:
            loss = nn.functional.huber_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            running += loss.detach()
        print(f"epoch {epoch} huber {running.item() / len(loader):.4f} lr {scheduler.get_last_lr()[0]:.2e}")


torch.manual_seed(13)
x = torch.randn(128, 10, 3).cumsum(1) / 3
y = x[:, -1, 0] - x[:, 0, 1]
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
fit(Mixer(10, 3), loader, epochs=6, peak=1e-2)
