import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Jittered(Dataset):
    def __init__(self, x, y, noise=0.2):
        self.x, self.y, self.noise = x, y, noise

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        sample = self.x[index]
        sample.add_(self.noise * torch.randn_like(sample))
        sample.mul_(1 + 0.1 * torch.randn(()))
        return {"signal": sample, "label": self.y[index]}


torch.manual_seed(99)
x = torch.randn(60, 7)
y = (x[:, 0] - x[:, 5] > 0).long()
original = x.clone()
train_set = Jittered(x, y)
loader = DataLoader(train_set, batch_size=12, shuffle=True)
model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    running = []
    for batch in loader:
        loss = criterion(model(batch["signal"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    print(epoch, sum(running) / len(running))
