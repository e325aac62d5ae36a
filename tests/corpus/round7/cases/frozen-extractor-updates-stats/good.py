import torch
import torch.nn as nn


class TransferModel(nn.Module):
    def __init__(self, extractor, features, classes):
        super().__init__()
        self.extractor = extractor
        for p in self.extractor.parameters():
            p.requires_grad = False
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(features, classes))

    def train(self, mode=True):
        super().train(mode)
        self.extractor.eval()
        return self

    def forward(self, x):
        return self.head(self.extractor(x))


def pretrain(extractor, n):
    probe = nn.Linear(10, 2)
    optimizer = torch.optim.Adam([*extractor.parameters(), *probe.parameters()], lr=1e-2)
    for _ in range(n):
        x = torch.randn(32, 6)
        loss = nn.functional.cross_entropy(probe(extractor(x)), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return extractor


torch.manual_seed(82)
extractor = pretrain(nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU()), n=5)
model = TransferModel(extractor, 10, 3)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
shifted = 3 + 2 * torch.randn(48, 6)
labels = torch.randint(0, 3, (48,))
for epoch in range(3):
    model.train()
    for x, y in zip(shifted.split(12), labels.split(12)):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
