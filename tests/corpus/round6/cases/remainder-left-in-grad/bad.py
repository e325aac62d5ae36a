import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Accumulator:
    def __init__(self, model, optimizer, every):
        self.model, self.optimizer, self.every = model, optimizer, every
        self.updates = 0

    def fit_epoch(self, loader):
        self.model.train()
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(self.model(x), y)
            (loss / self.every).backward()
            if (i + 1) % self.every == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.updates += 1
        return loss.item()


torch.manual_seed(8)
x = torch.randn(100, 6)
data = TensorDataset(x, (x[:, 0] > 0).long())
loader = DataLoader(data, batch_size=10, shuffle=True)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
trainer = Accumulator(net, torch.optim.SGD(net.parameters(), lr=0.1), every=4)
for epoch in range(3):
    print(epoch, trainer.fit_epoch(loader), trainer.updates)
