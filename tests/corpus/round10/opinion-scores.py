# /// case
# title = "Predictions of shape (B, 1) minus scores of shape (B,) make a B by B matrix"
# category = "loss"
# kind = "broadcast-loss"
# kinds_also_ok = ["shape-mismatch-in-loss", "silent-broadcasting", "target-shape-mismatch"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["predicted", "mos", "loss"]
# symptom = "all predictions go to the mean score and the error stops at the scores' variance"
# symptom_check = "bool(model(test_set.tensors[0]).flatten().std() < 0.3 * test_set.tensors[1].std())"
# cause = "Each prediction is compared with every score of the batch, so that the mean is the best answer."
# fix = "squeeze the last dimension of the predictions"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class MosNet(nn.Module):
    def __init__(self, bins=18, channels=24):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(bins, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(channels, channels, 3, padding=1),
            nn.ReLU(),
        )
        self.score = nn.Linear(channels, 1)

    def forward(self, spectrogram):
        return self.score(self.conv(spectrogram).mean(-1))  #! also


def listening_test(count, bins=18, frames=24):
    quality = torch.rand(count)
    voice = torch.sin(torch.linspace(0, 9, frames) + torch.rand(count, bins, 1) * 6)
    degraded = (voice + 2 * (1.2 - quality).view(-1, 1, 1) * torch.randn(count, bins, frames)).abs()
    return TensorDataset(degraded, 1 + 4 * quality)


def run(model, loader, optimizer=None):
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for spectrogram, mos in loader:
            predicted = model(spectrogram)  #- here
#+             predicted = model(spectrogram).squeeze(-1)
            loss = (predicted - mos).square().mean()  #! here
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()  #! also
                optimizer.step()
            total += loss.item() * len(mos)
    return total / len(loader.dataset)


torch.manual_seed(40)
train_set, test_set = listening_test(256), listening_test(48)
model = MosNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(20):
    model.train()
    train_mse = run(model, DataLoader(train_set, batch_size=16, shuffle=True), optimizer)
    model.eval()
    test_mse = run(model, DataLoader(test_set, batch_size=48))
    print(f"{epoch:2d} train {train_mse:.3f} test {test_mse:.3f}")
