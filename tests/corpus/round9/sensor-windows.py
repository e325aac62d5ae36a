# /// case
# title = "The augmentation adds its noise to the stored sample"
# category = "data"
# kind = "augmentation-modifies-dataset"
# kinds_also_ok = ["dataset-mutated-in-place", "in-place-augmentation", "getitem-returns-view"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["window", "__getitem__", "noise"]
# symptom = "the noise of all epochs adds up in the data set"
# symptom_check = "float(train_set.windows.abs().max()) > 1.01"
# cause = "self.windows[index] is a view, and += writes through it."
# fix = "window = window + noise"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class SensorWindows(Dataset):
    def __init__(self, windows, labels, noise=0.0, flip=0.0):
        self.windows, self.labels = windows, labels
        self.noise, self.flip = noise, flip

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        window = self.windows[index]  #! here
        if torch.rand(()) < self.flip:
            window = window.flip(-1)
        if self.noise:
            window += self.noise * torch.randn_like(window)  #- here
#+             window = window + self.noise * torch.randn_like(window)
        return window, self.labels[index]  #! also


class ActivityNet(nn.Module):
    def __init__(self, channels=3, activities=4):
        super().__init__()
        self.conv = nn.Conv1d(channels, 16, 5, padding=2)
        self.rnn = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, activities)

    def forward(self, x):
        h = torch.relu(self.conv(x)).transpose(1, 2)
        return self.head(self.rnn(h)[0].mean(1))


def simulate(count, length=20):
    labels = torch.randint(0, 4, (count,))
    phase = 6.28 * torch.rand(count, 1, 1)
    t = torch.linspace(0, 1, length)
    speed = 4.0 * (1 + labels[:, None, None])
    axes = torch.tensor([0.0, 1.0, 2.0])[:, None]
    return torch.sin(speed * t + axes + phase), labels


torch.manual_seed(70)
train_set = SensorWindows(*simulate(64), noise=0.3, flip=0.2)  #! also
loader = DataLoader(train_set, batch_size=16, shuffle=True)
model = ActivityNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(7):
    total = 0.0
    for x, y in loader:  #! also
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.3f}")
